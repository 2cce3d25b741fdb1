package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// maxErrors is how many errors of a file are told at once.
const maxErrors = 10

// maxSeconds bounds times: two centuries, so that sums of them fit into a
// time.Duration.
const maxSeconds = 200 * 365 * 24 * 3600

// table is a CSV file with a header line.
type table struct {
	name    string
	columns map[string]int
	reader  *csv.Reader
	used    map[string]bool
	errs    []error
	record  []string
}

// readTable reads a CSV file and calls row for each of its lines after the header,
// until there are too many errors. It returns the columns that nobody asked for.
func readTable(path string, required [][]string, row func(*table)) (unused []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading a CSV file: %w", err)
	}
	defer file.Close()
	t := &table{name: path, columns: map[string]int{}, reader: csv.NewReader(file), used: map[string]bool{}}
	t.reader.TrimLeadingSpace, t.reader.ReuseRecord = true, true
	if err := t.readHeader(required); err != nil {
		return nil, err
	}
	for len(t.errs) < maxErrors {
		t.record, err = t.reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.errs = append(t.errs, fmt.Errorf("%s: %w; each line must have as many values as the first, and quotes must be closed", path, err))
			break
		}
		row(t)
	}
	if len(t.errs) == maxErrors {
		t.errs = append(t.errs, fmt.Errorf("%s: too many errors, the rest is not read", path))
	}
	for name := range t.columns {
		if !t.used[name] {
			unused = append(unused, name)
		}
	}
	slices.Sort(unused)
	return unused, errors.Join(t.errs...)
}

// readHeader reads the names of the columns. Of each group of required ones, one
// must be there.
func (t *table) readHeader(required [][]string) error {
	header, err := t.reader.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: is empty; its first line must name the columns", t.name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	for i, name := range header {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		if _, twice := t.columns[name]; twice {
			return fmt.Errorf("%s, line 1: column %q is there twice; rename one", t.name, name)
		}
		t.columns[name] = i
	}
	var errs []error
	for _, group := range required {
		if !slices.ContainsFunc(group, func(name string) bool { _, ok := t.columns[name]; return ok }) {
			errs = append(errs, fmt.Errorf("%s, line 1: no column %s; name the columns in the first line", t.name, strings.Join(group, " or ")))
		}
	}
	return errors.Join(errs...)
}

// text returns the value of the first of these columns that exists, and its name.
func (t *table) text(columns ...string) (value, column string) {
	for _, name := range columns {
		t.used[name] = true
	}
	for _, name := range columns {
		if i, ok := t.columns[name]; ok {
			return strings.TrimSpace(t.record[i]), name
		}
	}
	return "", columns[0]
}

// fail notes an error at a column of the present line.
func (t *table) fail(column, format string, args ...any) {
	line, _ := t.reader.FieldPos(0)
	if i, ok := t.columns[column]; ok {
		line, _ = t.reader.FieldPos(i)
	}
	if len(t.errs) < maxErrors {
		t.errs = append(t.errs, fmt.Errorf("%s, line %d, column %s: %s", t.name, line, column, fmt.Sprintf(format, args...)))
	}
}

// number returns a whole number of at least 0, and whether there is one.
func (t *table) number(limit int64, columns ...string) (int64, bool) {
	text, column := t.text(columns...)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64) // pandas writes 1.0
	if err != nil || n < 0 || n > float64(limit) || n != float64(int64(n)) {
		t.fail(column, "%q must be a whole number from 0 to %d", text, limit)
		return 0, false
	}
	return int64(n), true
}

// seconds returns a time or duration in seconds, fractions cut off, and whether there
// is one.
func (t *table) seconds(columns ...string) (int64, bool) {
	text, column := t.text(columns...)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 || n > maxSeconds {
		t.fail(column, "%q must be a number of seconds from 0 to %d", text, maxSeconds)
		return 0, false
	}
	return int64(n), true
}
