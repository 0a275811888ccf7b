package ledger

import "kvca/state"

// Bounds on what one hold, one peer's subtotal and one note may claim, so that no
// sum of them can overflow, whatever a peer sends. No request is that large.
const (
	maxNovel = 1 << 40
	maxTold  = 1 << 55
	maxNote  = 1 << 60
)

// Load is what is reserved on one backend.
type Load struct {
	// Novel is the novel-block load in bytes of CBR: prefill work that was
	// routed and has not begun to be answered.
	Novel int64
	// Active is the number of requests that were routed and are not over.
	Active int64
}

// Bytes is the load in bytes of CBR, an active request counting activeBytes.
func (l Load) Bytes(activeBytes float64) float64 {
	return float64(l.Novel) + activeBytes*float64(l.Active)
}

func (l *Load) add(o Load) {
	l.Novel += o.Novel
	l.Active += o.Active
}

func (l Load) plus(o Load) Load { return Load{l.Novel + o.Novel, l.Active + o.Active} }

func (l Load) minus(o Load) Load { return Load{l.Novel - o.Novel, l.Active - o.Active} }

func (l Load) greater(o Load) Load { return Load{max(l.Novel, o.Novel), max(l.Active, o.Active)} }

func (l Load) within(most int64) Load {
	return Load{min(max(l.Novel, 0), most), min(max(l.Active, 0), most)}
}

// at is a table's entry for s, the zero value beyond its end.
func at(table []Load, s state.Slot) Load {
	if int(s) < len(table) {
		return table[s]
	}
	return Load{}
}

// grown is the table with an entry for s.
func grown[T any](table []T, s state.Slot) []T {
	if missing := int(s) + 1 - len(table); missing > 0 {
		table = append(table, make([]T, missing)...)
	}
	return table
}
