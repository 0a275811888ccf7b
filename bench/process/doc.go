// Package process starts the programs that a benchmark measures, ends them, and
// reads from /proc what they and their children have used.
package process
