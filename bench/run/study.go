package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"

	"kvca/bench/study"
)

// runStudy simulates policies in virtual time and writes a report with plots.
func runStudy(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("study", flag.ContinueOnError)
	var (
		bench   = flags.String("dir", "bench", "folder that has the repository's slices of traces")
		out     = flags.String("out", "", "folder of the report; results/sim of -dir where empty")
		traces  = flags.String("traces", "", "folder with mooncake_conversation.jsonl.gz and agent_sessions.jsonl.gz; the repository's slices where empty")
		only    = flags.String("only", "", "names of experiments, with commas between them; all where empty")
		seeds   = flags.Int("seeds", 3, "seeds, 1 to 100")
		quick   = flags.Bool("quick", false, "one seed")
		full    = flags.Bool("full", false, "whole traces where experiments take their first part; an hour or two")
		results = flags.String("results", "", "file that keeps results; runs whose results this program has put there are not repeated")
		stale   = flags.Bool("stale", false, "take results that an earlier build has put there, too")
		render  = flags.Bool("render", false, "write the report from the file's results alone, of whichever build")
		list    = flags.Bool("list", false, "only say what experiments there are")
		strict  = flags.Bool("strict", false, "fail where a promise is broken")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *render && *results == "" {
		return errors.New("-render: want -results too")
	}
	if *seeds < 1 || *seeds > 100 {
		return errors.New("-seeds: want 1 to 100")
	}
	if *quick {
		*seeds = 1
	}
	if *list {
		study.List(os.Stdout, *seeds)
		return nil
	}
	o := study.Options{
		Seeds: *seeds, Full: *full, Stale: *stale, Render: *render, Out: *out, Sliced: *traces == "", Store: &study.Store{},
		Command:  strings.Join(append([]string{"go run ./bench/run study"}, args...), " "),
		Progress: os.Stderr, Summary: os.Stdout,
	}
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	if o.Out == "" {
		o.Out = filepath.Join(*bench, "results", "sim")
	}
	return studyWith(ctx, o, *bench, *traces, *results, *strict)
}

// studyWith opens what the study needs.
func studyWith(ctx context.Context, o study.Options, bench, traces, results string, strict bool) (err error) {
	if traces != "" {
		o.Files, err = study.FilesIn(traces)
	} else {
		o.Files, err = study.Slices(bench)
	}
	if err != nil {
		return err
	}
	if results != "" {
		if o.Store, err = study.OpenStore(results); err != nil {
			return err
		}
	}
	broken, err := study.Run(ctx, o)
	if err == nil && broken && strict {
		err = errBroken
	}
	return err
}
