package main

import (
	"cmp"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// gcPercent is how much garbage may gather before a collection, in per cent of
// what is live, where GOGC does not say. Most of what lives is the block map,
// which holds no pointers: a collection does not look into it, so collections
// stay cheap however large it is, while the usual 100 would let garbage grow as
// large as the map before the first. Processor time per request was the same at
// 50, 100 and 200 with an empty map, which is the worst case for a low value. With
// a full map of 96 MiB, 50 left 6 MB to the 64 that are promised beyond the bound.
const gcPercent = 33

// fewDescriptors is the number of file descriptors below which an operator is
// warned: a request takes two, a client's and a backend's.
const fewDescriptors = 4096

// setLimits fits the process to its control group and says what came of it. The
// runtime has set GOMAXPROCS from the group's CPU quota already, and has raised
// the soft limit on file descriptors to the hard one; both are only logged.
func setLimits(log *slog.Logger, s *settings) {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	limit, err := memlimit.Set()
	if err != nil {
		log.Warn("memory limit not read from the control group: set GOMEMLIMIT", "error", err)
	}
	soft, hard := descriptors()
	log.Info("limits", "gomaxprocs", runtime.GOMAXPROCS(0), "gomemlimit", showLimit(limit),
		"gogc", cmp.Or(os.Getenv("GOGC"), strconv.Itoa(gcPercent)), "file_descriptors", soft, "file_descriptors_hard", hard)
	if soft > 0 && soft < fewDescriptors {
		log.Warn("few file descriptors: a request takes two; raise the limit (LimitNOFILE, ulimit -n)", "file_descriptors", soft)
	}
	if limit > 0 && limit != math.MaxInt64 && s.blocks.MaxBytes > limit/2 {
		log.Warn("the block map may take more than half of the memory limit: lower --max-index-bytes or raise the limit",
			"max_index_bytes", s.blocks.MaxBytes, "gomemlimit", limit)
	}
}

// showLimit writes the memory limit, which is the greatest number for none.
func showLimit(limit int64) string {
	if limit == math.MaxInt64 {
		return "none"
	}
	return showSize(limit)
}
