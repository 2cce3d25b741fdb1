package webhook

import (
	"strconv"

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

// bytesPerTerm is room for a term with a usual name: the text around it takes up to 99
// bytes, and a comma.
const bytesPerTerm = 128

// marshal returns the operations as a JSON patch.
func marshal(ops []operation) ([]byte, error) {
	size := 0
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

// sizeOf is about how many bytes an operation takes.
func sizeOf(o *operation) int {
	size := len(o.path) + bytesPerTerm
	switch value := o.value.(type) {
	case string:
		size += len(value) + len(value)/2 // a quotation mark takes two bytes
	case nodeTerms:
		size += len(value) * bytesPerTerm
	case nodeAffinity:
		size += len(value.preferred) * bytesPerTerm
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
