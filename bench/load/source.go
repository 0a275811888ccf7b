package load

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
)

// source gives one connection its next request, nil when there is none left.
type source interface{ next() []byte }

// Requests makes the source of each connection.
type Requests func() source

type fixed []byte

func (f fixed) next() []byte { return f }

// Same sends one body again and again.
func Same(body []byte) Requests {
	request := fixed(Request(body))
	return func() source { return request }
}

// serial is where a distinct prompt's number stands: in front of its text, so
// that no two prompts have a block in common.
const serial = "prompt 000000000000 "

type distinct struct {
	request []byte
	at      int
	taken   *atomic.Int64
	count   int64
}

func (d *distinct) next() []byte {
	n := d.taken.Add(1)
	if n > d.count {
		return nil
	}
	number(d.request[d.at:], n)
	return d.request
}

// number writes the number of a prompt where its zeros stand.
func number(at []byte, n int64) {
	field := at[:len("000000000000")]
	for i := len(field) - 1; i >= 0; i-- {
		field[i] = byte('0' + n%10)
		n /= 10
	}
}

func distinctBody(model string, stream bool, n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	run := strconv.FormatUint(seed, 36) + " "
	return body(model, stream, []string{message("user", serial+run+Text(r, max(n-160, 1)))})
}

// DistinctBody is the body of the k-th request of Distinct, from 1.
func DistinctBody(model string, n int, k int64, seed uint64) []byte {
	b := distinctBody(model, false, n, seed)
	number(b[bytes.Index(b, []byte(serial))+len("prompt "):], k)
	return b
}

// FollowUp is what comes after a body: its messages, an answer and a question.
func FollowUp(body []byte, answer, question string) []byte {
	more := "," + message("assistant", answer) + "," + message("user", question) + "]}"
	return append(bytes.TrimSuffix(bytes.Clone(body), []byte("]}")), more...)
}

// Distinct sends count prompts of about n bytes of which no two are the same.
// seed tells one run from another: prompts of different seeds differ too.
func Distinct(model string, n int, count int64, seed uint64) Requests {
	return numbered(distinctBody(model, false, n, seed), count)
}

// DistinctStreams is Distinct with streamed answers.
func DistinctStreams(model string, n int, count int64, seed uint64) Requests {
	return numbered(distinctBody(model, true, n, seed), count)
}

// FollowUps sends a follow-up of each prompt that Distinct sends.
func FollowUps(model string, n int, count int64, seed uint64) Requests {
	return numbered(FollowUp(distinctBody(model, false, n, seed), "An answer.", "And then?"), count)
}

// numbered sends a body again and again, with another number each time.
func numbered(body []byte, count int64) Requests {
	return numberedRequest(Request(body), count)
}

func numberedRequest(request []byte, count int64) Requests {
	at := bytes.Index(request, []byte(serial)) + len("prompt ")
	taken := new(atomic.Int64)
	return func() source {
		return &distinct{request: bytes.Clone(request), at: at, taken: taken, count: count}
	}
}
