//go:build unix && !linux

package controlplane

import "syscall"

// attributes keep Ctrl-C in a terminal from reaching the child before Stop
// does. Only Linux can also tie the child's life to that of its parent: here,
// a killed test leaves its children running.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
