// Command run measures the gateway: beside the bare reverse proxy and peers, and
// against what is promised of it.
//
//	go run ./bench/run cpu            CPU of a request, kvca and others in turns
//	go run ./bench/run affinity       follow-ups kept, and how even the backends are used
//	go run ./bench/run memory         resident memory after 20,000 distinct prompts
//	go run ./bench/run soak           resident memory during millions of them
//	go run ./bench/run leavers        what is left of clients that go away
//	go run ./bench/run routing        latency of a decision, without HTTP
//	go run ./bench/run index          lookups in the precise index while engines publish
//	go run ./bench/run affinity -nodes 1,3,8  the same, every turn to a random node of a cluster
//	go run ./bench/run cpu -nodes 3           CPU of a request, a cluster and one node in turns
//	go run ./bench/run burst          how evenly simultaneous requests are spread
//	go run ./bench/run traffic        what nodes send each other
//	go run ./bench/run idle           CPU of idle nodes
//	go run ./bench/run ready          time until a new node is ready, and what it knows then
//	go run ./bench/run owner-calls    time of a call to an owner
//	go run ./bench/run drills         a node is killed, one is stopped, under load
//	go run ./bench/run partition      a cluster in network namespaces is parted
//	go run ./bench/run rolling        nodes and backends are restarted one by one under load
//	go run ./bench/run endure         one thing after the other goes wrong around a busy cluster
//	go run ./bench/run limits         tenants' limits over eight nodes, and fairness beside a flood
//	go run ./bench/run saturate       what one node can take, and what it adds at half of that
//	go run ./bench/run study          policies, traces, loads and nodes in virtual time
//	go run ./bench/run world          the simulator and real processes with the same workload
//	go run ./bench/run peers-install  installs the peers that are Python packages
//	go run ./bench/run fake|plain|noise  the backends, the floor and a sender of garbage, as processes
//
// All but fake, plain, noise, routing and index need bin/kvca. Everything is on 127.0.0.1 and
// ends with the program. The exit status is 1 where a promise is broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// errBroken means that what was measured is not what was promised; the report
// says what.
var errBroken = errors.New("not as promised")

var commands = map[string]func(ctx context.Context, args []string) error{
	"echo":          runEcho,
	"fake":          runFake,
	"plain":         runPlain,
	"cpu":           runCPU,
	"affinity":      runAffinity,
	"memory":        runMemory,
	"soak":          runSoak,
	"leavers":       runLeavers,
	"routing":       runRouting,
	"index":         runIndex,
	"burst":         runBurst,
	"traffic":       runTraffic,
	"idle":          runIdle,
	"ready":         runReady,
	"owner-calls":   runOwnerCalls,
	"drills":        runDrills,
	"partition":     runPartition,
	"rolling":       runRolling,
	"endure":        runEndure,
	"saturate":      runSaturate,
	"limits":        runLimits,
	"noise":         runNoise,
	"study":         runStudy,
	"world":         runWorld,
	"peers-install": runPeersInstall,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && commands[args[0]] != nil {
		return commands[args[0]](ctx, args[1:])
	}
	names := make([]string, 0, len(commands))
	for name := range commands {
		names = append(names, name)
	}
	slices.Sort(names)
	return fmt.Errorf("want one of %s, and -help after it", strings.Join(names, ", "))
}
