// Package demo plays conversations against a gateway, counts what its clients
// see, and shows it as a table.
//
//	script   what is said: the same for the same seed, whoever is asked
//	talk     one conversation: what was said so far, and the body of the next turn
//	client   one turn: a streamed chat, timed and counted where a client sees it
//	player   many conversations side by side against one gateway, over all its nodes
//	tally    the sums, since the start and over the last ten seconds
//	table    the sums of several gateways, in text
//	screen   where the table goes: redrawn in place, or block by block
//
// Two players with one script hold the same conversations with two gateways. An
// answer depends on its prompt only where the engines are simulated ones of one
// seed, so even the history that a follow-up repeats is the same on both sides.
// Each side goes at its own pace: who waits longer for answers asks less, which
// spares the slower gateway, not the faster one.
package demo
