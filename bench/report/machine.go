package report

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes what a benchmark ran on, in one line.
func Machine() string {
	return fmt.Sprintf("%s, %d cores, %s memory, Linux %s, %s",
		field("/proc/cpuinfo", "model name"), runtime.NumCPU(), memory(), kernel(), runtime.Version())
}

// field is the first value of a key in a file of "key : value" lines.
func field(path, key string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	return fieldOf(string(text), key)
}

func fieldOf(text, key string) string {
	for l := range strings.Lines(text) {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}

func memory() string {
	var kB int64
	if _, err := fmt.Sscanf(field("/proc/meminfo", "MemTotal"), "%d kB", &kB); err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%.0f GB", float64(kB)/(1<<20))
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
