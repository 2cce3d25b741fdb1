package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
)

//go:embed picture.html
var pictureText string

// pictureTemplate needs nothing from outside: style and drawing are in the file.
var pictureTemplate = template.Must(template.New("picture").Funcs(template.FuncMap{
	"percent": func(part, whole float64) string { return fmt.Sprintf("%.1f%%", 100*part/max(whole, 1)) },
	"number":  func(n float64) string { return fmt.Sprintf("%.4g", n) },
	"cells":   cells,
	"summary": summary,
}).Parse(pictureText))

// picture renders the results as a page to look at.
func picture(results []Result) ([]byte, error) {
	var out bytes.Buffer
	err := pictureTemplate.Execute(&out, Groups(results))
	return out.Bytes(), err
}

// cells lists the GPUs of a node: true for those in use.
func cells(use [2]int64) []bool {
	out := make([]bool, use[0])
	for i := range out {
		out[i] = int64(i) < use[1]
	}
	return out
}

// summary says what the drawing of a cluster shows.
func summary(nodes [][2]int64) string {
	var occupied int
	var used, all int64
	for _, use := range nodes {
		all += use[0]
		used += use[1]
		if use[1] > 0 {
			occupied++
		}
	}
	return fmt.Sprintf("Drawing of %d nodes, %d with GPUs in use; %d of %d GPUs in use", len(nodes), occupied, used, all)
}
