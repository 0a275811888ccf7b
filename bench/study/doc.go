// Package study asks the simulator many questions and writes down the answers:
// the product's policies beside other routers' rules, over traces, engines, loads
// and numbers of nodes, as Markdown with tables and plots.
//
// An Experiment is data: a question, the Cases whose results answer it, and how
// they are shown. A Runner simulates each case once per seed, however many
// experiments ask for it, several at a time; each simulation is single-threaded
// and repeats itself exactly. Results are kept in a file under a fingerprint of
// what decides them, so a report can be written again without the work.
//
// What a report says in words is generated from results. A promise has a verdict:
// kept, broken, or not measured.
package study
