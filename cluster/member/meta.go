package member

// Meta is what a node says about itself.
type Meta struct {
	Link        string
	Boot        uint64
	MinProtocol uint8
	MaxProtocol uint8
	Cluster     string
	BlockSize   int
	KeyCheck    uint64
	Zone        string
	Client      string
	Admin       string
}
