package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrMissing means that this machine can't have a Lab.
var ErrMissing = errors.New("network namespaces are not to be had")

// maxNodes bounds a lab; the addresses allow no more than 250.
const maxNodes = 16

// waitTime is how long a lab waits for another one's end.
const waitTime = time.Minute

// Lab is namespaces and the wire between them. Close ends it.
type Lab struct {
	names []string
	lock  *os.File
	*wire
}

// New makes a namespace for each name.
func New(ctx context.Context, names []string, f Faults) (*Lab, error) {
	if err := missing(); err != nil {
		return nil, err
	}
	if len(names) > maxNodes {
		return nil, fmt.Errorf("%d namespaces, want %d at most", len(names), maxNodes)
	}
	l := &Lab{names: names, wire: newWire(names, f)}
	var err error
	if l.lock, err = lock(ctx); err != nil {
		return nil, err
	}
	for i := range names {
		if err := l.add(ctx, i); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	l.wire.run()
	return l, nil
}

// lock waits until no other process has a lab. The lock ends with the file, so
// with the process.
func lock(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "kvca-netns.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("wait for another lab's end: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// missing says what this machine lacks.
func missing() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: only root may make them", ErrMissing)
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return fmt.Errorf("%w: iproute2 is not installed", ErrMissing)
	}
	f, err := os.OpenFile(tunPath, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return f.Close()
}

// add makes the i-th namespace: its loopback, its way to the machine, and its end
// of the wire.
func (l *Lab) add(ctx context.Context, i int) error {
	ns, host := space(i), fmt.Sprintf("kvca%d", i)
	if err := ip(ctx, "netns add "+ns); err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	for _, args := range []string{
		"link add " + host + " type veth peer name eth0 netns " + ns,
		"addr add " + l.outside(i) + "/30 dev " + host,
		"link set " + host + " up",
		"-n " + ns + " addr add " + l.Host(i) + "/30 dev eth0",
		"-n " + ns + " link set lo up",
		"-n " + ns + " link set eth0 up",
		"-n " + ns + " route add default via " + l.outside(i),
	} {
		if err := ip(ctx, args); err != nil {
			return err
		}
	}
	end, err := openTUN(ns)
	if err != nil {
		return err
	}
	l.wire.ends = append(l.wire.ends, end)
	return errors.Join(
		ip(ctx, "-n "+ns+" addr add "+l.Peers(i)+"/24 dev "+tunName),
		ip(ctx, "-n "+ns+" link set "+tunName+" up"),
	)
}

// space is the name of the i-th namespace.
func space(i int) string { return fmt.Sprintf("kvca-%d-%d", os.Getpid(), i) }

// Enter is what to put in front of a command line to run it in a namespace.
func (l *Lab) Enter(i int) []string { return []string{"ip", "netns", "exec", space(i)} }

// Host is the address at which the machine reaches a namespace.
func (l *Lab) Host(i int) string { return net.IPv4(10, 211, byte(i), 2).String() }

// outside is the machine's end of the same.
func (l *Lab) outside(i int) string { return net.IPv4(10, 211, byte(i), 1).String() }

// Machine is an address of the machine that all namespaces reach.
func (l *Lab) Machine() string { return l.outside(0) }

// Peers is the address of a namespace on the wire.
func (l *Lab) Peers(i int) string { return net.IPv4(10, 212, 0, byte(i+1)).String() }

// Close removes the namespaces. What runs in them must have ended.
func (l *Lab) Close() error {
	defer l.lock.Close()
	l.wire.close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var faults []error
	for i := range l.names {
		if _, err := os.Stat("/run/netns/" + space(i)); err == nil {
			faults = append(faults, ip(ctx, "netns del "+space(i)))
		}
	}
	return errors.Join(faults...)
}

// ip runs one command of iproute2.
func ip(ctx context.Context, args string) error {
	text, err := exec.CommandContext(ctx, "ip", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", args, err, strings.TrimSpace(string(text)))
	}
	return nil
}
