// Command configdoc writes docs/configuration.md from the types of the configuration:
// their fields, comments and defaults.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// document is the page, relative to the repository.
var document = filepath.Join("docs", "configuration.md")

const introduction = "<!-- Generated from the types in config/ by `make generate`. Do not edit. -->\n\n" + `# Configuration

[config/manager/configuration.yaml](../config/manager/configuration.yaml) is the configuration with every setting, its default and a comment. A file only needs what differs. A setting that is unknown, written twice or out of range stops the start, and the message names each of them.

How to change it in an installation: [operating](operating.md#changing-the-configuration), or the value ` + "`configuration`" + ` of the [Helm chart](../config/helm/gpu-binpacker/README.md#configuration). Flags of ` + "`gpu-binpacker serve`" + ` override single settings: ` + "`gpu-binpacker serve --help`" + `. Durations are written as 500ms, 60s or 1h30m.

| setting | default | meaning |
|---|---|---|
`

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "configdoc:", err)
		os.Exit(1)
	}
}

func write() error {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return err
	}
	page, err := generate(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, document), []byte(page), 0o644)
}

// generate returns the page.
func generate(root string) (string, error) {
	comments, err := fieldComments(filepath.Join(root, "config"))
	if err != nil {
		return "", err
	}
	w := &writer{comments: comments}
	w.settings("", reflect.TypeFor[config.Configuration](), reflect.ValueOf(config.Default()))
	return introduction + w.rows.String(), errors.Join(w.errs...)
}

// fieldComments maps "Type.Field" to the comment of each field of package config.
func fieldComments(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	comments := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parsing the configuration: %w", err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						comments[spec.Name.Name+"."+name.Name] = field.Doc.Text()
					}
				}
			}
			return false
		})
	}
	return comments, nil
}

// writer makes a row for each setting.
type writer struct {
	comments map[string]string
	rows     strings.Builder
	errs     []error
}

// settings writes the settings of a struct, and of the structs in it.
func (w *writer) settings(path string, t reflect.Type, v reflect.Value) {
	names := jsonNames(t)
	for i := range t.NumField() {
		field := t.Field(i)
		name := names[field.Name]
		if field.Anonymous {
			continue // apiVersion and kind
		}
		if path != "" {
			name = path + "." + name
		}
		if field.Type.Kind() == reflect.Struct && field.Type.PkgPath() == t.PkgPath() {
			w.settings(name, field.Type, v.Field(i))
			continue
		}
		comment := w.comments[t.Name()+"."+field.Name]
		if comment == "" {
			w.errs = append(w.errs, fmt.Errorf("%s.%s has no comment", t.Name(), field.Name))
		}
		fmt.Fprintf(&w.rows, "| `%s` | %s | %s |\n", name, defaultOf(v.Field(i)), meaning(comment, field.Name, names))
	}
}

// jsonNames maps the names of a struct's fields to those in the file.
func jsonNames(t reflect.Type) map[string]string {
	names := map[string]string{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names[t.Field(i).Name] = name
	}
	return names
}

// shownItems is how many items of a list fit into a cell.
const shownItems = 3

// defaultOf writes a default as in the file.
func defaultOf(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil(), v.Kind() == reflect.Slice && v.Len() == 0, v.Kind() == reflect.String && v.Len() == 0:
		return "none"
	case v.Kind() == reflect.Slice && v.Len() > shownItems:
		return fmt.Sprintf("%d values, see the file", v.Len())
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return err.Error()
	}
	return "`" + strings.Trim(string(text), `"`) + "`"
}

// capitalised finds words that may be names of fields.
var capitalised = regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)

// meaning is a field's comment for readers who know the settings by their names in
// the file. A comment begins with the field's name and a verb.
func meaning(comment, field string, names map[string]string) string {
	comment = strings.Join(strings.Fields(comment), " ")
	comment = strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(comment)
	first := true
	return capitalised.ReplaceAllStringFunc(comment, func(word string) string {
		name, known := names[word]
		isSubject := first && word == field
		first = false
		if known && (isSubject || word != "Default" && word != field) {
			return "`" + name + "`"
		}
		return word
	})
}
