package controlplane

import "syscall"

// attributes make the kernel kill the child when this process dies, however it
// dies, and keep Ctrl-C in a terminal from reaching the child before Stop does.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
