// Package procfs reads what a process uses from /proc of Linux.
package procfs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of CPU times: USER_HZ, which is 100 on all platforms of Go.
const tick = 10 * time.Millisecond

// CPU returns the CPU time that a process has used so far.
func CPU(pid int) (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	stat, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	used, err := parseStat(stat)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", path, err)
	}
	return used, nil
}

// parseStat adds up utime and stime, fields 14 and 15. Field 2, the name in
// brackets, may contain anything.
func parseStat(stat []byte) (time.Duration, error) {
	const utime, stime, afterName = 14, 15, 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= stime-afterName {
		return 0, fmt.Errorf("%d fields after the name", len(fields))
	}
	var used time.Duration
	for _, field := range []int{utime, stime} {
		ticks, err := strconv.ParseInt(string(fields[field-afterName]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("field %d: %w", field, err)
		}
		used += time.Duration(ticks) * tick
	}
	return used, nil
}

// Memory is what a process has in RAM now, and had at most, in bytes.
type Memory struct{ RSS, Peak int64 }

// MemoryOf returns the memory of a process.
func MemoryOf(pid int) (Memory, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	status, err := os.ReadFile(path)
	if err != nil {
		return Memory{}, err
	}
	m, err := parseStatus(status)
	if err != nil {
		return Memory{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return m, nil
}

func parseStatus(status []byte) (Memory, error) {
	var m Memory
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) != 3 || string(fields[2]) != "kB" {
			continue
		}
		var to *int64
		switch string(fields[0]) {
		case "VmRSS:":
			to = &m.RSS
		case "VmHWM:":
			to = &m.Peak
		default:
			continue
		}
		kibibytes, err := strconv.ParseInt(string(fields[1]), 10, 64)
		if err != nil {
			return Memory{}, err
		}
		*to = kibibytes << 10
	}
	if m.RSS == 0 || m.Peak == 0 {
		return Memory{}, fmt.Errorf("no VmRSS or no VmHWM: has the process ended?")
	}
	return m, nil
}
