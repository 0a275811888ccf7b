package soak

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockMissing says why clocks can't be moved here.
var clockMissing = func() string {
	if runtime.GOARCH != "amd64" {
		return "the code that moves a clock is for amd64"
	}
	return ""
}()

// Clock moves one process's wall clock, and no other one's.
//
// A static Go program asks no library for the time that could be replaced
// (LD_PRELOAD); it calls the code that the kernel maps into each process. Clock puts
// other code there, which asks the kernel and adds an offset to the wall clock. The
// monotonic clock is left alone, as it is where an administrator or NTP sets a clock.
// Close leaves that code where it is.
type Clock struct {
	pid    int
	mem    *os.File
	offset int64 // where the process has its offset
}

// stub is clock_gettime(edi, rsi): the system call, then the offset where edi is 0,
// CLOCK_REALTIME. The offset in seconds lies behind it.
var stub = []byte{
	0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, 228
	0x0f, 0x05, // syscall
	0x85, 0xff, // test edi, edi
	0x75, 0x0a, // jnz to ret
	0x48, 0x8b, 0x0d, 0x06, 0x00, 0x00, 0x00, // mov rcx, [rip+6]
	0x48, 0x01, 0x0e, // add [rsi], rcx
	0xc3,       // ret
	0x90, 0x90, // so that the offset is aligned
	0, 0, 0, 0, 0, 0, 0, 0,
}

// stopTries is how often a process is stopped until none of its threads is in the code
// that is replaced.
const stopTries = 50

// OpenClock takes hold of a process's clock.
func OpenClock(pid int) (*Clock, error) {
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("move a clock: %w", err)
	}
	c := &Clock{pid: pid, mem: mem}
	if err := c.place(); err != nil {
		mem.Close()
		return nil, fmt.Errorf("move the clock of process %d: %w", pid, err)
	}
	return c, nil
}

// place puts the code in its place, unless it is there already.
func (c *Clock) place() error {
	start, size, err := c.code()
	if err != nil {
		return err
	}
	c.offset = start + int64(len(stub)-8)
	there := make([]byte, len(stub)-8)
	if _, err := c.mem.ReadAt(there, start); err != nil {
		return fmt.Errorf("read the kernel's code: %w", err)
	}
	if bytes.Equal(there, stub[:len(there)]) {
		return nil
	}
	if size < int64(len(stub)) {
		return fmt.Errorf("clock_gettime has %d bytes of code, want %d at least", size, len(stub))
	}
	for range stopTries {
		if err := syscall.Kill(c.pid, syscall.SIGSTOP); err != nil {
			return fmt.Errorf("stop: %w", err)
		}
		clear, err := c.outside(start, start+size)
		if err == nil && clear {
			_, err = c.mem.WriteAt(stub, start)
		}
		if contErr := syscall.Kill(c.pid, syscall.SIGCONT); err != nil || contErr != nil {
			return errors.Join(err, contErr)
		}
		if clear {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("a thread is in the code each time")
}

// code is where the kernel's clock_gettime lies in the process.
func (c *Clock) code() (start, size int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", c.pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		if !strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			return 0, 0, fmt.Errorf("read maps: %w", err)
		}
		image := make([]byte, to-from)
		if _, err := c.mem.ReadAt(image, from); err != nil {
			return 0, 0, fmt.Errorf("read the kernel's code: %w", err)
		}
		file, err := elf.NewFile(bytes.NewReader(image))
		if err != nil {
			return 0, 0, fmt.Errorf("read the kernel's code: %w", err)
		}
		symbols, err := file.DynamicSymbols()
		if err != nil {
			return 0, 0, fmt.Errorf("read the kernel's code: %w", err)
		}
		for _, s := range symbols {
			if s.Name == "__vdso_clock_gettime" {
				return from + int64(s.Value), int64(s.Size), nil
			}
		}
	}
	return 0, 0, errors.New("the process has no clock_gettime of the kernel's")
}

// outside is whether all threads are stopped, none of them between two addresses.
func (c *Clock) outside(from, to int64) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", c.pid))
	if err != nil || len(threads) == 0 {
		return false, fmt.Errorf("list threads: %w", err)
	}
	for _, path := range threads {
		var at int64
		for tries := 0; ; tries++ {
			text, err := os.ReadFile(path)
			if err != nil {
				break // it has ended
			}
			fields := strings.Fields(string(text))
			if len(fields) > 1 { // else it says that it is running
				if at, err = strconv.ParseInt(strings.TrimPrefix(fields[len(fields)-1], "0x"), 16, 64); err != nil {
					return false, fmt.Errorf("read %s: %w", path, err)
				}
				break
			}
			if tries == 100 {
				return false, nil
			}
			time.Sleep(100 * time.Microsecond)
		}
		if at >= from && at < to {
			return false, nil
		}
	}
	return true, nil
}

// Move sets the clock to the machine's and so much more.
func (c *Clock) Move(by time.Duration) error {
	var seconds [8]byte
	binary.LittleEndian.PutUint64(seconds[:], uint64(int64(by/time.Second)))
	if _, err := c.mem.WriteAt(seconds[:], c.offset); err != nil {
		return fmt.Errorf("move the clock of process %d: %w", c.pid, err)
	}
	return nil
}

// Close lets go of the process. Where the clock was moved it stays so.
func (c *Clock) Close() { c.mem.Close() }
