package webhook

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// A patch is mostly terms and texts. They are written here, and everything else by the
// JSON library, whose way by reflection takes three to four times as long for the terms
// of a large cluster (BenchmarkMarshal).

// nodeTerms are preferred node-affinity terms, one for each ranked node. The form
// matters: by name of the node, not by hostname label, which is not the node's identity
// and which Karpenter takes for a requirement.
type nodeTerms []scoring.RankedNode

// nodeTerm is one of them.
type nodeTerm scoring.RankedNode

// nodeAffinity is a node affinity with these terms and nothing else.
type nodeAffinity struct{ preferred nodeTerms }

// Room for the text around the name of a term's node, and for that of an operation
// around path and value, both with a comma.
const (
	bytesPerTerm      = len(`{"weight":100,"preference":{"matchFields":[{"key":"metadata.name","operator":"In","values":[""]}]}},`)
	bytesPerOperation = len(`{"op":"replace","path":"","value":{"preferredDuringSchedulingIgnoredDuringExecution":[]}},`)
)

// marshal returns the operations as a JSON patch.
func marshal(ops []operation) ([]byte, error) {
	size := len(`[]`)
	for i := range ops {
		size += sizeOf(&ops[i])
	}
	b := append(make([]byte, 0, size), '[')
	var err error
	for i := range ops {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = ops[i].append(b); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// sizeOf is how many bytes an operation takes, or some more, unless a text has
// characters other than quotation marks that have to be escaped, or the value is of
// another kind than those that are large.
func sizeOf(o *operation) int {
	size := len(o.path) + bytesPerOperation
	switch value := o.value.(type) {
	case string:
		return size + len(value) + strings.Count(value, `"`)
	case nodeTerms:
		return size + value.size()
	case nodeAffinity:
		return size + value.preferred.size()
	}
	return size + bytesPerTerm
}

func (t nodeTerms) size() int {
	size := len(t) * bytesPerTerm
	for i := range t {
		size += len(t[i].Name)
	}
	return size
}

func (o *operation) append(b []byte) ([]byte, error) {
	b = append(b, `{"op":`...)
	b = appendText(b, o.op)
	b = append(b, `,"path":`...)
	b = appendText(b, o.path)
	if o.value != nil {
		b = append(b, `,"value":`...)
	}
	switch value := o.value.(type) {
	case nil:
	case string:
		b = appendText(b, value)
	case nodeTerm:
		b = value.append(b)
	case nodeTerms:
		b = value.append(b)
	case nodeAffinity:
		b = append(b, `{"preferredDuringSchedulingIgnoredDuringExecution":`...)
		b = append(value.preferred.append(b), '}')
	default:
		text, err := json.Marshal(value, written)
		if err != nil {
			return nil, err
		}
		b = append(b, text...)
	}
	return append(b, '}'), nil
}

func (t nodeTerms) append(b []byte) []byte {
	b = append(b, '[')
	for i := range t {
		if i > 0 {
			b = append(b, ',')
		}
		b = nodeTerm(t[i]).append(b)
	}
	return append(b, ']')
}

func (t nodeTerm) append(b []byte) []byte {
	b = append(b, `{"weight":`...)
	b = strconv.AppendInt(b, int64(t.Weight), 10)
	b = append(b, `,"preference":{"matchFields":[{"key":"metadata.name","operator":"In","values":[`...)
	b = appendText(b, t.Name)
	return append(b, `]}]}}`...)
}

// appendText appends a JSON string. What is no UTF-8, which only a UID that did not come
// from an API server can hold, is replaced.
func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text)
	return b
}
