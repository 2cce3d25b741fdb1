package server

import (
	"bytes"
	"sync"
)

// buffers are for the time of a request. Each would be new memory otherwise, of which
// an index of many pods makes the collector's work expensive.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxKeptBuffer is how large a buffer may be to be used again: a usual answer takes
// 10 kB.
const maxKeptBuffer = 64 << 10

func takeBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

// giveBuffer gives a buffer back that nobody uses any more.
func giveBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxKeptBuffer {
		b.Reset()
		buffers.Put(b)
	}
}
