package cbr

// Endpoint is a client endpoint whose requests have a canonical form.
type Endpoint uint8

// The endpoints. Requests to Other have no chain: only their model and stream
// flag are read.
const (
	Other Endpoint = iota
	Chat
	Completions
	Responses
	Messages
)

// endpoints holds, by Endpoint, its path, the letter that stands for it in a CBR,
// and the top-level member that holds its prompt.
var endpoints = [...]struct {
	path   string
	letter byte
	prompt string
}{
	Other:       {path: "other"},
	Chat:        {"/v1/chat/completions", 'c', "messages"},
	Completions: {"/v1/completions", 'p', "prompt"},
	Responses:   {"/v1/responses", 'r', "input"},
	Messages:    {"/v1/messages", 'm', "messages"},
}

// EndpointOf finds the endpoint of a URL path, which has to match exactly; it is
// Other for every path it does not know.
func EndpointOf(path string) Endpoint {
	for ep := Chat; ep <= Messages; ep++ {
		if endpoints[ep].path == path {
			return ep
		}
	}
	return Other
}

// String is the endpoint's path, and "other" for Other.
func (ep Endpoint) String() string {
	if int(ep) >= len(endpoints) {
		return endpoints[Other].path
	}
	return endpoints[ep].path
}

// Phase says how a request is to be routed, as far as its text tells.
type Phase uint8

// The phases. A request shorter than one block is a bootstrap request whatever
// its phase says; that is for the caller to see, who knows the block size.
const (
	Bootstrap Phase = iota
	FollowUp
)

// String is the phase as logs, metrics and scripts spell it.
func (p Phase) String() string {
	if p == FollowUp {
		return "follow-up"
	}
	return "bootstrap"
}
