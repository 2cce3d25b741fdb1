package fakeapi

import (
	"encoding/binary"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Objects are kept as their own protobuf and copied into lists and events as they
// are. So what is around them is written here by hand rather than by the types'
// Marshal methods, which would need the objects decoded.

// magic begins every object that is encoded as protobuf
// (k8s.io/apimachinery/pkg/runtime/serializer/protobuf).
const magic = "k8s\x00"

// Tags of length-delimited fields: number<<3 | 2.
const (
	field1 = 1<<3 | 2
	field2 = 2<<3 | 2
)

// appendField appends a field with its tag and length.
func appendField(to []byte, tag byte, content []byte) []byte {
	to = binary.AppendUvarint(append(to, tag), uint64(len(content)))
	return append(to, content...)
}

// fieldSize is how long a field with a content of that size is.
func fieldSize(size int) int {
	var buffer [binary.MaxVarintLen64]byte
	return 1 + binary.PutUvarint(buffer[:], uint64(size)) + size
}

// appendEnvelope appends what is before an encoded object of that size: the magic,
// and the beginning of a runtime.Unknown {1: typeMeta, 2: raw}.
func appendEnvelope(to []byte, typeMeta metav1.TypeMeta, size int) []byte {
	meta := runtime.TypeMeta{APIVersion: typeMeta.APIVersion, Kind: typeMeta.Kind}
	encoded, err := meta.Marshal()
	if err != nil {
		panic(err) // two strings into memory
	}
	to = appendField(append(to, magic...), field1, encoded)
	return binary.AppendUvarint(append(to, field2), uint64(size))
}

// appendFrame appends an event of a watch: its length in four bytes, and a
// metav1.WatchEvent {1: type, 2: RawExtension {1: raw}}.
func appendFrame(to []byte, kind string, typeMeta metav1.TypeMeta, object []byte) []byte {
	var buffer [128]byte
	envelope := appendEnvelope(buffer[:0], typeMeta, len(object))
	raw := len(envelope) + len(object)
	extension := fieldSize(raw)
	to = binary.BigEndian.AppendUint32(to, uint32(fieldSize(len(kind))+fieldSize(extension)))
	to = appendField(to, field1, []byte(kind))
	to = binary.AppendUvarint(append(to, field2), uint64(extension))
	to = binary.AppendUvarint(append(to, field1), uint64(raw))
	return append(append(to, envelope...), object...)
}
