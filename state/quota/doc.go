// Package quota holds keys, tenants or tenants' models, to limits that are those of
// all nodes together: requests and tokens a second, and requests under way at the same
// time. It is the core: no clock, no goroutine, no lock; time is an argument.
//
// # Data
//
// Each key has one owner among the nodes (state/ring). The Owner has a bucket of
// requests and one of tokens, which fill at the limit up to what a quiet key may save
// up, and claims: how many slots, requests under way, each holder has. It hands them out
// in slices. A Holder is what one node has in hand of a key: requests and tokens that it
// may use without asking, and slots, used or free. A Book decides without any owner:
// for a lone node, or by a node's share of the limit where the owner can't be had.
//
// A holder asks for what a request lacks, and beside it for what its own rate of late
// needs in 100 ms; where that is a few requests at least it asks ahead of need. What it
// has in hand beyond that goes back after 100 ms. So single requests are asked for one
// by one, thousands a second ten times a second, and what lies unused is no more than
// 100 ms of what is used.
//
// # Exactness
//
// What the owner gives is out of its bucket, so that all nodes together never admit
// more than the limit and the burst. They admit no less as long as they ask often
// enough: a holder that got less than it wanted asks again after 20 ms, and the buckets
// hold a tenth of a second more than the burst, so that nothing is lost meanwhile. Where
// there is too little for all, holders get equal parts, and take turns at what can't be
// divided (turn.go); else the owner's own node, which always asks first, would get all.
//
// Slots are exact: what is free at one node while others are refused is recalled, and
// from then on given back with each release. While slots are plenty a node keeps what
// its rate needs in 50 ms.
//
// Tokens are booked by estimate and settled afterwards. A request may begin while there
// are any tokens at all, and puts the key in debt if it costs more; a rule that waits for
// all of them would have long prompts wait behind short ones for ever. A debt is at most
// 15 seconds of the limit, whatever an estimate or a bill said: a key whose requests cost
// more than that each gets more than its limit.
//
// # A change of owner
//
// Books are not handed over. The new owner's buckets start empty, so that nothing is
// given twice; what holders have in hand bridges the first moment and is not given back.
// Slots are told to it by all holders: reports replace what is believed of one holder,
// and add nothing. Until all have told, a sixteenth of the slots (one at least) is given
// out at most. Questions are numbered: a report that does not know of the last answer
// yet is taken together with what that answer gave, and an answer that comes after
// another question was asked brings no slots.
//
// # Limits that differ
//
// While a keys file is rolled out, nodes may be configured differently. The owner goes by
// what its own node said within the last minute, else by what the asker says; a
// holder goes by the owner's once it has an answer.
//
// # Bounds
//
// An Owner has a claim for each holder, of about 90 bytes, a Holder and a Book are of
// fixed size. Rates are cut at 10^12 a second, amounts at 2^40, slots at 2^20 a node, so
// that no sum overflows, whatever peers say.
package quota
