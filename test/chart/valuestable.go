package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The table stands between these lines of the README.
const (
	tableStart = "<!-- Generated from values.yaml by `go run ./chart/cmd/generate` in test/. -->\n"
	tableEnd   = "<!-- End of the generated table. -->\n"
)

// maxDefault is how many characters a default has at most in the table.
const maxDefault = 60

// withTable returns the README with the table of the values.
func withTable(readme, values []byte) ([]byte, error) {
	before, rest, found := bytes.Cut(readme, []byte(tableStart))
	_, after, closed := bytes.Cut(rest, []byte(tableEnd))
	if !found || !closed {
		return nil, fmt.Errorf("README.md: no place for the table: the lines %q and %q are missing", tableStart, tableEnd)
	}
	table, err := valuesTable(values)
	if err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	return bytes.Join([][]byte{before, []byte(table), after}, nil), nil
}

// valuesTable returns the table, with a row for each value that has a comment. A
// value without one must be a mapping whose values have comments.
func valuesTable(values []byte) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return "", err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return "", errors.New("not a mapping")
	}
	var rows []string
	if err := addRows(&rows, "", document.Content[0]); err != nil {
		return "", err
	}
	return tableStart + "| value | default | meaning |\n|---|---|---|\n" + strings.Join(rows, "") + tableEnd, nil
}

// addRows adds the rows of a mapping's values, in the order of the file.
func addRows(rows *[]string, prefix string, mapping *yaml.Node) error {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		path := prefix + key.Value
		nested := value.Kind == yaml.MappingNode && hasComments(value)
		if key.HeadComment != "" {
			shown := ""
			if !nested {
				var err error
				if shown, err = showDefault(value); err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
			}
			*rows = append(*rows, fmt.Sprintf("| %#q | %s | %s |\n", path, shown, meaning(key.HeadComment)))
		} else if !nested {
			return fmt.Errorf("%s has no comment that says what it means", path)
		}
		if nested {
			if err := addRows(rows, path+".", value); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasComments tells whether anything in a mapping is documented on its own.
func hasComments(mapping *yaml.Node) bool {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		if key.HeadComment != "" || value.Kind == yaml.MappingNode && hasComments(value) {
			return true
		}
	}
	return false
}

// meaning is a comment on one line.
func meaning(comment string) string {
	lines := strings.Split(comment, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimLeft(line, "#"))
	}
	return strings.ReplaceAll(strings.Join(lines, " "), "|", `\|`)
}

// showDefault is a value as JSON, or where to find it when that is long.
func showDefault(value *yaml.Node) (string, error) {
	var decoded any
	if err := value.Decode(&decoded); err != nil {
		return "", err
	}
	text, err := json.Marshal(decoded)
	if err != nil {
		return "", err
	}
	if len(text) > maxDefault {
		return "see [values.yaml](values.yaml)", nil
	}
	return "`" + string(text) + "`", nil
}
