// Package world checks that the simulator agrees with the world: one workload, once through real kvca processes in front of
// engines that answer over HTTP, once through bench/sim, and the hit rates of both.
//
// # One workload in two forms
//
// A generated trace says who asks when, how long texts are and how long people think (workload). From it come conversations with
// real texts, whose turns repeat all that was said before and the answers that the engines gave (play). Their bodies and answers are
// recorded, and the trace that the simulator plays is made of the recording: the engine's own template and tokenizer say how many
// tokens each prompt had and name its blocks, so that both caches are asked for the very same blocks (recording). Times of arrival
// and of thinking are in the trace; when answers came is left to the simulator. Each seed has its own small delays, as late as turns
// were sent in the world (unrest).
//
// # What is the same and what is not
//
// Engines are those of bench/engine on both sides, in real time with a speed-up on the one. The gateways' constants of time are in
// seconds of the clock, so the simulator's are stretched by the speed-up (compare). Not stretched are those of the cluster, some
// milliseconds until nodes know of each other's work. Nor does the simulator have the reading of metrics, by which a gateway learns
// that an engine has more to do than it was given. Its blocks are of 128 tokens taken for 512 bytes; a gateway's are 512 bytes of
// CBR, and what a token had of them is told beside the result.
//
// A machine that is too slow for the speed-up sends late and answers late, and what it measures then is itself. So lateness is
// measured too, and an outcome with too much of it is none (Outcome.TooSlow).
package world
