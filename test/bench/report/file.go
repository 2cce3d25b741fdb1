package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Names of the files.
const (
	ResultsFile = "packing.json"
	PictureFile = "packing.html"
)

// File is the results so far, in the order in which they first came.
type File struct {
	dir     string
	Results []Result
	// at: key -> index in Results.
	at map[string]int
}

// Open reads the results of earlier invocations in dir, if there are any.
func Open(dir string) (*File, error) {
	f := &File{dir: dir, at: map[string]int{}}
	text, err := os.ReadFile(filepath.Join(dir, ResultsFile))
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading earlier results: %w", err)
	}
	if err := json.Unmarshal(text, &f.Results); err != nil {
		return nil, fmt.Errorf("reading earlier results: %w", err)
	}
	for i := range f.Results {
		f.at[f.Results[i].Key()] = i
	}
	return f, nil
}

// Has tells whether there is a result of that key.
func (f *File) Has(key string) bool {
	_, ok := f.at[key]
	return ok
}

// Add adds a result or replaces the one with its key, and saves everything.
func (f *File) Add(r Result) error {
	if i, ok := f.at[r.Key()]; ok {
		f.Results[i] = r
	} else {
		f.at[r.Key()] = len(f.Results)
		f.Results = append(f.Results, r)
	}
	return f.save()
}

// save writes both files.
func (f *File) save() error {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return fmt.Errorf("saving results: %w", err)
	}
	text, err := encode(f.Results)
	if err != nil {
		return fmt.Errorf("saving results: %w", err)
	}
	if err := replace(filepath.Join(f.dir, ResultsFile), text); err != nil {
		return fmt.Errorf("saving results: %w", err)
	}
	page, err := picture(f.Results)
	if err != nil {
		return fmt.Errorf("drawing results: %w", err)
	}
	return replace(filepath.Join(f.dir, PictureFile), page)
}

// encode writes one result per line, which keeps the file readable.
func encode(results []Result) ([]byte, error) {
	out := []byte("[\n")
	for i := range results {
		line, err := json.Marshal(&results[i])
		if err != nil {
			return nil, err
		}
		out = append(out, line...)
		if i < len(results)-1 {
			out = append(out, ',')
		}
		out = append(out, '\n')
	}
	return append(out, ']', '\n'), nil
}

// replace writes a file at once, so that it is never half written.
func replace(path string, content []byte) error {
	temporary := path + ".tmp"
	if err := os.WriteFile(temporary, content, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
