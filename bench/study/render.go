package study

import (
	"fmt"
	"strings"
	"time"
)

// render is the report but for its head: the verdicts, then each experiment.
func render(list []Experiment, pages []Page, r *Results, notes string) string {
	var b strings.Builder
	b.WriteString("# Routing in virtual time\n\n" + notes + "\n## Verdicts\n\n" + summary(list, pages))
	for i := range list {
		e := &list[i]
		runs, wanted, seconds := r.of(e)
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n`go run ./bench/run study -only %s`: %d of %d runs, %.0f s of workers' time.\n\n",
			e.Name, e.Question, e.Name, runs, wanted, seconds)
		b.WriteString(pages[i].text.String())
		b.WriteString(sentences(pages[i].verdicts))
	}
	return b.String()
}

// summary is all verdicts, one to a line, under the names of their experiments.
func summary(list []Experiment, pages []Page) string {
	var b strings.Builder
	for i := range list {
		if len(pages[i].verdicts) > 0 {
			fmt.Fprintf(&b, "%s:\n\n%s\n", list[i].Name, sentences(pages[i].verdicts))
		}
	}
	if b.Len() == 0 {
		return "No experiment here has a promise to judge.\n"
	}
	return b.String()
}

// notes say how the figures came about.
func notes(o Options, r *Results, took time.Duration, failed error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The product's own routing code and other routers' rules, in front of simulated engines, in virtual time. "+
		"%d runs, up to %d seeds; every run repeats itself exactly. ", len(r.found), len(r.seeds))
	if o.Render {
		b.WriteString("Written again from kept results.\n")
	} else {
		fmt.Fprintf(&b, "This took %v.\n", took.Round(time.Second))
	}
	if o.Sliced {
		b.WriteString("\n**Of the recorded traces only the slices in the repository were played; the rates are for whole ones. " +
			"Figures of `conversation` and `agent` mean little.**\n")
	}
	if failed != nil {
		fmt.Fprintf(&b, "\n**Some runs failed and are missing below:**\n\n```\n%v\n```\n", failed)
	}
	return b.String()
}
