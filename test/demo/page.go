package main

import (
	"bytes"
	_ "embed"
	"html/template"

	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

//go:embed page.html
var pageText string

// pageTemplate needs nothing from outside: style and drawing are in the file.
var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"gpus": gpus}).Parse(pageText))

// page renders the report as a page to look at.
func (r report) page() ([]byte, error) {
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, r)
	return out.Bytes(), err
}

// gpus lists the GPUs of a node: the number of the pod that uses each, from 1, or
// 0 for a free one.
func gpus(n scenario.NodeUse) []int {
	out := make([]int, 0, n.GPUs)
	for i, pod := range n.Pods {
		for range pod {
			out = append(out, i+1)
		}
	}
	for len(out) < n.GPUs {
		out = append(out, 0)
	}
	return out
}
