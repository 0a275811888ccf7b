package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// tick is the unit of CPU times in /proc: USER_HZ is 100 on every Linux.
const tick = 10 * time.Millisecond

// Usage is what a process and its descendants use.
type Usage struct {
	// CPU is user and system time since they started. Children that have ended
	// are not in it.
	CPU time.Duration
	// RSS is resident memory now, HighWater the most there was, in bytes.
	RSS, HighWater int64
}

// UsageOf sums over pid and all its descendants.
func UsageOf(pid int) (Usage, error) {
	family, err := tree(pid)
	if err != nil {
		return Usage{}, err
	}
	var sum Usage
	for _, s := range family {
		sum.CPU += s.cpu
		rss, peak, err := memoryOf(s.pid)
		if err != nil {
			continue // it has ended meanwhile
		}
		sum.RSS += rss
		sum.HighWater += peak
	}
	return sum, nil
}

// stat is what is needed of /proc/PID/stat.
type stat struct {
	pid, parent int
	cpu         time.Duration
}

// tree lists pid and its descendants.
func tree(pid int) ([]stat, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	children := map[int][]stat{}
	var found []stat
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		s, err := parseStat(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if s.pid == pid {
			found = append(found, s)
		}
		children[s.parent] = append(children[s.parent], s)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("process %d is not there", pid)
	}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found, nil
}

// parseStat reads a line of /proc/PID/stat. The second field is the program's
// name in parentheses and may hold anything, parentheses and spaces included.
func parseStat(line []byte) (stat, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return stat{}, errors.New("no program name")
	}
	fields := bytes.Fields(line[end+1:])
	if len(fields) < 13 {
		return stat{}, fmt.Errorf("%d fields after the name, want at least 13", len(fields))
	}
	var n [4]int
	for i, field := range [][]byte{bytes.TrimSpace(line[:open]), fields[1], fields[11], fields[12]} {
		v, err := strconv.Atoi(string(field))
		if err != nil {
			return stat{}, fmt.Errorf("read number: %w", err)
		}
		n[i] = v
	}
	return stat{pid: n[0], parent: n[1], cpu: time.Duration(n[2]+n[3]) * tick}, nil
}

func memoryOf(pid int) (rss, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	return kilobytes(text, "VmRSS:"), kilobytes(text, "VmHWM:"), nil
}

// kilobytes is the value of a key of /proc/PID/status in bytes, 0 if it's not
// there, as it isn't in a process that has ended and was not waited for.
func kilobytes(text []byte, key string) int64 {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) == 3 && string(fields[0]) == key {
			n, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			return n << 10
		}
	}
	return 0
}
