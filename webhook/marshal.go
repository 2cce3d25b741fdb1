package webhook

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"strings"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// bytesPerOperation is room for the text around the path and the value of an operation,
// with a comma, and bytesPerValue for a value of a kind that is never large.
const (
	bytesPerOperation = len(`{"op":"replace","path":"","value":},`)
	bytesPerValue     = 128
)

// marshal returns the operations as a JSON patch.
func marshal(operations []steering.Operation) ([]byte, error) {
	size := len(`[]`)
	for i := range operations {
		size += sizeOf(&operations[i])
	}
	b := append(make([]byte, 0, size), '[')
	var err error
	for i := range operations {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendOperation(b, &operations[i]); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// sizeOf is how many bytes an operation takes, or some more, unless a text has
// characters other than quotation marks that have to be escaped, or the value is of
// another kind than those that are large.
func sizeOf(o *steering.Operation) int {
	size := len(o.Path) + bytesPerOperation
	switch value := o.Value.(type) {
	case string:
		return size + len(value) + strings.Count(value, `"`)
	case steering.Text:
		return size + value.JSONSize()
	}
	return size + bytesPerValue
}

// appendOperation appends an operation as JSON.
func appendOperation(b []byte, o *steering.Operation) ([]byte, error) {
	b = append(b, `{"op":`...)
	b = appendText(b, o.Op)
	b = append(b, `,"path":`...)
	b = appendText(b, o.Path)
	if o.Value != nil {
		b = append(b, `,"value":`...)
	}
	switch value := o.Value.(type) {
	case nil:
	case string:
		b = appendText(b, value)
	case steering.Text:
		b = value.AppendJSON(b)
	default:
		text, err := json.Marshal(value, written)
		if err != nil {
			return nil, err
		}
		b = append(b, text...)
	}
	return append(b, '}'), nil
}

// appendText appends a JSON string. What is no UTF-8, which only a UID that did not come
// from an API server can hold, is replaced.
func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text)
	return b
}
