package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"kvca/proxy/steer"
	"kvca/router"
	"kvca/state/cbr"
)

// identify names the request: its model, its chain, and the backends that may
// take it.
func (x *exchange) identify() error {
	var err error
	switch e := x.endpoint; {
	case e.ids:
		err = x.identifyStored()
	case e.socket:
		err = x.identifySocket()
	case e.anywhere:
		x.members, x.want = x.p.pool.All(), router.Request{}
	case e.needsModel || len(x.body) > 0 && x.readsAsJSON():
		err = x.identifyBody()
	default:
		err = x.identifyOther()
	}
	x.named = time.Now()
	return err
}

// identifyBody reads the body. Endpoints that can do without a model fall back
// on the only one there is.
func (x *exchange) identifyBody() error {
	if len(x.body) == 0 {
		return badRequest("invalid_json", "The request has no body: a JSON object was expected.", "")
	}
	if err := x.unambiguous(); err != nil {
		return err
	}
	n := x.p.namers.Get().(*namer)
	x.namer, n.x = n, x
	name, err := x.encode(n)
	if name.PreviousResponseID != "" && x.instead.model != "" {
		x.instead.excluded = true // no other model has what its own has kept
		name, err = x.encode(n)
	}
	if err != nil {
		if fault, ok := err.(*cbr.Error); ok && fault.Code == "missing_model" && !x.endpoint.needsModel {
			return x.identifyOnly()
		}
		return err
	}
	x.name = name
	x.members, _ = x.p.pool.Model(name.Model)
	x.want = router.Request{
		Model: name.Model, Phase: name.Phase, Chain: n.hasher.Hashes(), Marks: n.hasher.Marks(), Bytes: name.Bytes,
		SkipsCache: name.SkipsCache,
	}
	if x.endpoint.cbr == cbr.Other && x.endpoint.computes {
		x.want.Bytes = int64(len(x.body))
	}
	x.rewriteModel()
	if name.PreviousResponseID == "" {
		return nil
	}
	if err := x.admit(); err != nil { // before backends are asked who keeps it
		return err
	}
	keeper, err := x.keeperOf(name.PreviousResponseID, x.members)
	if err != nil || keeper == nil { // whom nobody knows of, the engine refuses in its own words
		return err
	}
	return x.pinTo(keeper, name.PreviousResponseID)
}

// encode reads the body and cuts what can change its prompt into blocks.
func (x *exchange) encode(n *namer) (cbr.Request, error) {
	n.hasher.Reset(x.cfg.Key, x.p.router.BlockSize())
	return n.encoder.Encode(x.endpoint.cbr, x.body, n.resolver, &n.hasher)
}

// returnNamer gives the scratch of naming the body back.
func (x *exchange) returnNamer() {
	if x.namer != nil {
		x.namer.x = nil
		x.p.namers.Put(x.namer)
		x.namer = nil
	}
}

// rewriteModel splices the model's own name in for a configured alias, or another
// model's that stands in for it: the one rewrite there is.
func (x *exchange) rewriteModel() {
	if x.name.ClientModel == x.name.Model || x.name.ClientModel == "" {
		return
	}
	quoted, _ := json.Marshal(x.name.Model) // a string: can't fail
	x.splice(quoted)
}

// splice puts another name where the body names the model, and touches no other byte.
func (x *exchange) splice(name []byte) {
	span := x.name.ModelSpan
	body := make([]byte, 0, len(x.body)+len(name))
	body = append(body, x.body[:span[0]]...)
	body = append(body, name...)
	x.instead.unspliced, x.body = x.body, append(body, x.body[span[1]:]...)
}

// identifyOther takes a body that is no JSON, or none.
func (x *exchange) identifyOther() error {
	if x.isForm() {
		return x.identifyForm(x.formBoundary())
	}
	if x.restricted() && len(x.body) > 0 {
		return &apiError{
			status: http.StatusForbidden, code: "model_not_allowed", param: "model",
			message: "The model of this body can't be read, and the key that was sent may not use all of them. Send JSON, or a form.",
		}
	}
	return x.identifyOnly()
}

// onlyModel is the model of a request that names none: fine while there is just one
// to take it.
func (x *exchange) onlyModel() (string, error) {
	models := x.p.pool.Models()
	if len(models) == 1 && x.permitted(models[0]) {
		return models[0], nil
	}
	models = slices.DeleteFunc(models, func(name string) bool { return !x.permitted(name) })
	if len(models) == 0 {
		return "", unavailable("no_backend", "No backend serves a model yet. Try again shortly.")
	}
	return "", badRequest("missing_model", fmt.Sprintf("The request names no model, and there are several here: set \"model\" to one of %s.", strings.Join(models[:min(len(models), 20)], ", ")), "model")
}

// identifyOnly takes a request that names no model.
func (x *exchange) identifyOnly() error {
	model, err := x.onlyModel()
	if err != nil {
		return err
	}
	x.name.Model = model
	x.members, _ = x.p.pool.Model(model)
	x.want = router.Request{Model: model}
	if x.endpoint.computes {
		x.want.Bytes = int64(len(x.body))
	}
	return nil
}

// identifyStored finds the backend that keeps a response.
func (x *exchange) identifyStored() error {
	if err := x.admit(); err != nil { // before backends are asked who keeps it
		return err
	}
	id, _, _ := strings.Cut(x.r.URL.Path[len(responsesPrefix):], "/")
	b, err := x.keeperOf(id, x.p.pool.All())
	switch {
	case err != nil:
		return err
	case b == nil:
		return &apiError{status: http.StatusNotFound, code: "response_not_found", param: "response_id", message: "No backend keeps the response " + quoteShort(id) + ": it was made elsewhere, deleted, or forgotten."}
	}
	x.want = router.Request{}
	return x.pinTo(b, id)
}

// readsAsJSON is whether the body is to be read. Engines read what they take for JSON
// whatever it calls itself, and so do we: on our own endpoints all but forms, on those
// that the operator named what claims to be JSON or begins like it.
func (x *exchange) readsAsJSON() bool {
	if x.isForm() {
		return false
	}
	return !x.endpoint.foreign || x.isJSON() || bytes.HasPrefix(bytes.TrimLeft(x.body, " \t\r\n"), []byte("{"))
}

// unambiguous refuses, where the tenant may not use all models, what another parser
// may read as another model.
func (x *exchange) unambiguous() error {
	if !x.restricted() {
		return nil
	}
	names := []string{"model"}
	if x.endpoint.style == ollamaStyle {
		names = append(names, "name") // as old versions call it
	}
	n, err := steer.Count(x.body, names...)
	var fault *steer.Error
	switch {
	case errors.As(err, &fault):
		return badRequest(fault.Code, sentence(fault), "")
	case n > 1:
		return badRequest("ambiguous_model", "The request names its model more than once, in whatever spelling: send one \"model\".", "model")
	}
	return nil
}

// isJSON is whether the body claims to be JSON, or claims nothing.
func (x *exchange) isJSON() bool {
	t := x.r.Header.Get("Content-Type")
	if t == "" {
		return true
	}
	kind, _, err := mime.ParseMediaType(t)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}
