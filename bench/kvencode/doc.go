// Package kvencode writes batches of KV cache events as engines do: for simulated
// engines, and to test what reads them.
package kvencode
