package wire

// Kinds of frames. A node skips kinds that it does not know.
const (
	// Reserve asks the owner of the candidates for a reservation.
	Reserve byte = 1 + iota
	// Granted answers Reserve: the request is booked.
	Granted
	// Refused answers Reserve: nothing is booked.
	Refused
	// Changes tells an owner what became of reservations.
	Changes
	// HeldSet tells an owner all that the sender holds there.
	HeldSet
	// Subtotals tells everyone how much the sender holds on which backends.
	Subtotals
	// Ages tells everyone how old the oldest location in a full mirror is.
	Ages
	// Delta carries what the sender has learned.
	Delta
	// Ack tells up to which delta the sender has applied.
	Ack
	// Digest asks for what the sender lacks, and says what it has.
	Digest
	// Page answers Digest with locations.
	Page
	// PageEnd ends the answer to Digest.
	PageEnd
	// PageAck tells how much of an answer is applied.
	PageAck
	// Roster tells which backends the sender knows and how it finds them.
	Roster
	// Facts tells the small facts that the sender knows.
	Facts
	// KVOffer tells that the sender reads what an engine holds, and how that goes.
	KVOffer
	// KVWant answers KVOffer: the whole is to be told, or no more of it.
	KVWant
	// KVPart tells what an engine holds: a page of the copy, or changes.
	KVPart
	// KVAck tells how far parts are applied.
	KVAck
	// AgentOffer tells a node what an agent reads; KVWant answers it.
	AgentOffer
	// AgentPart tells a node what an engine holds in the engine's words; KVAck
	// answers it.
	AgentPart
	// QuotaAsk asks the owner of a key for a part of its limit.
	QuotaAsk
	// QuotaGrant answers QuotaAsk, or tells a holder that slots are scarce.
	QuotaGrant
	// QuotaHeld tells an owner what the sender has of its keys.
	QuotaHeld
	// Turn tells of those who wait for room in a pool; see the package turn.
	Turn
)
