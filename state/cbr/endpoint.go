package cbr

// Endpoint is a client endpoint whose requests have a canonical form.
type Endpoint uint8

// The endpoints. Requests to Other have no chain: only their model and stream
// flag are read. Those behind Messages are engines' own.
const (
	Other Endpoint = iota
	Chat
	Completions
	Responses
	Messages
	OllamaChat
	OllamaGenerate
	Generate // TGI's and SGLang's
	Complete // llama.cpp's
)

// endpoints holds what tells the endpoints apart.
var endpoints = [...]struct {
	path   string
	letter byte   // that stands for it in a CBR
	prompt string // the top-level member that holds its prompt
	text   bool   // the prompt is a text or token IDs, no messages
	native bool   // an engine's own: a body need not name the model
	out    names  // further members that can't change the prompt
}{
	Other:       {path: "other"},
	Chat:        {path: "/v1/chat/completions", letter: 'c', prompt: "messages"},
	Completions: {path: "/v1/completions", letter: 'p', prompt: "prompt", text: true},
	Responses:   {path: "/v1/responses", letter: 'r', prompt: "input"},
	Messages:    {path: "/v1/messages", letter: 'm', prompt: "messages"},

	OllamaChat:     {path: "/api/chat", letter: 'o', prompt: "messages", native: true, out: ollamaOut},
	OllamaGenerate: {path: "/api/generate", letter: 'g', prompt: "prompt", text: true, native: true, out: ollamaOut},
	Generate:       {path: "/generate", letter: 'n', prompt: "inputs", text: true, native: true, out: generateOut},
	Complete:       {path: "/completion", letter: 'l', prompt: "prompt", text: true, native: true, out: completeOut},
}

// EndpointOf finds the endpoint of a URL path, which has to match exactly; it is
// Other for every path it does not know.
func EndpointOf(path string) Endpoint {
	for ep := Chat; int(ep) < len(endpoints); ep++ {
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
