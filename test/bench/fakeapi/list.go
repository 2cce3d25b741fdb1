package fakeapi

import (
	"bufio"
	"encoding/binary"
	"net/http"
	"sort"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bufferSize is how much of an answer is written at once.
const bufferSize = 128 << 10

// writeList writes the objects, or with limit a part of them.
func (req *request) writeList(w http.ResponseWriter, r *http.Request) {
	all, version := req.resource.snapshot()
	if req.version > version {
		tooLarge(w)
		return
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatUint(version, 10)}
	if token := r.URL.Query().Get("continue"); token != "" {
		all = all[sort.Search(len(all), func(i int) bool { return all[i].key > token }):]
	}
	// As kube-apiserver, whose cache answers resourceVersion 0 without parts.
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err == nil && limit > 0 && limit < len(all) && r.URL.Query().Get("resourceVersion") != "0" {
		remaining := int64(len(all) - limit)
		meta.Continue, meta.RemainingItemCount = all[limit-1].key, &remaining
		all = all[:limit]
	}
	encodedMeta, err := meta.Marshal()
	if err != nil {
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
		return
	}
	// A list is {1: metadata, 2: items}.
	size := fieldSize(len(encodedMeta))
	for i := range all {
		size += fieldSize(len(all[i].data))
	}
	w.Header().Set("Content-Type", protobuf)
	out := bufio.NewWriterSize(w, bufferSize)
	buffer := appendField(appendEnvelope(nil, req.list, size), field1, encodedMeta)
	for i := range all {
		_, _ = out.Write(buffer) // out remembers errors
		buffer = binary.AppendUvarint(append(buffer[:0], field2), uint64(len(all[i].data)))
		if _, err := out.Write(buffer); err != nil {
			return // the client is gone
		}
		_, _ = out.Write(all[i].data)
		buffer = buffer[:0]
	}
	_, _ = out.Write(buffer)
	_ = out.Flush()
}
