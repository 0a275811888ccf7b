// Package report writes what a benchmark found: a Markdown table, under the
// date, the machine and the command that it was found with. A figure without
// them can't be compared with another.
package report
