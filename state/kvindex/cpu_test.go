package kvindex

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is what this process has used of the processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reportCPU reports CPU time as well, which tells more on a busy machine. It is to be
// deferred where the loop begins.
func reportCPU(b *testing.B) func() {
	begun := cpuTime()
	return func() { b.ReportMetric(float64(cpuTime()-begun)/float64(b.N), "cpu-ns/op") }
}
