package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// chart is a Helm chart that is to be released.
type chart struct {
	// version is a tag, like v0.1.0.
	version string
	// image is REPOSITORY:TAG@DIGEST.
	image string
	// source is the chart's folder, output that of the package.
	source, output string
	created        time.Time
}

var references = regexp.MustCompile(`^([^@]+):([A-Za-z0-9_][A-Za-z0-9_.-]*)@(sha256:[a-f0-9]{64})$`)

// write writes the chart's package: the files of source with the version in
// Chart.yaml and the image in values.yaml. It returns the path of the package,
// which is named as helm package would name it.
func (c chart) write() (string, error) {
	image := references.FindStringSubmatch(c.image)
	if image == nil {
		return "", fmt.Errorf("-image: %q is not REPOSITORY:TAG@sha256:DIGEST", c.image)
	}
	number := strings.TrimPrefix(c.version, "v")
	name, err := c.name()
	if err != nil {
		return "", err
	}
	// Helm looks for Chart.yaml first.
	files := []string{"Chart.yaml", "values.yaml"}
	err = fs.WalkDir(os.DirFS(c.source), ".", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !slices.Contains(files, file) {
			files = append(files, file)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	changes := map[string][]setting{
		"Chart.yaml":  {{[]string{"version"}, number}, {[]string{"appVersion"}, c.version}},
		"values.yaml": {{[]string{"image", "repository"}, image[1]}, {[]string{"image", "tag"}, image[2]}, {[]string{"image", "digest"}, image[3]}},
	}
	var members []member
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(c.source, file))
		if err != nil {
			return "", err
		}
		for _, change := range changes[file] {
			if content, err = change.apply(content); err != nil {
				return "", fmt.Errorf("%s: %w", file, err)
			}
		}
		members = append(members, member{path.Join(name, file), 0o644, content})
	}
	archive := filepath.Join(c.output, name+"-"+number+".tgz")
	return archive, writeTarGz(archive, members, c.created)
}

func (c chart) name() (string, error) {
	var metadata struct {
		Name         string
		Dependencies []any
	}
	content, err := os.ReadFile(filepath.Join(c.source, "Chart.yaml"))
	if err != nil {
		return "", err
	}
	if err := yaml.Unmarshal(content, &metadata); err != nil {
		return "", fmt.Errorf("reading Chart.yaml: %w", err)
	}
	if metadata.Name == "" {
		return "", errors.New("no name in Chart.yaml")
	}
	if len(metadata.Dependencies) > 0 {
		return "", errors.New("dependencies in Chart.yaml: only helm package -u can package them")
	}
	return metadata.Name, nil
}

// setting is a value of a YAML file that is given another one.
type setting struct {
	// keys lead to the value: a key, or a key of a map and a key in it.
	keys  []string
	value string
}

// apply returns the file with the other value and everything else, comments too,
// as it was. A file without the keys, or with them in another form than one line
// each, is an error.
func (s setting) apply(content []byte) ([]byte, error) {
	lines := strings.SplitAfter(string(content), "\n")
	last := s.keys[len(s.keys)-1]
	line := regexp.MustCompile(`^(\s*` + last + `:)([^#\n]*?)(\s+#.*)?(\n?)$`)
	parent, set := "", 0
	for i, text := range lines {
		indented := strings.HasPrefix(text, " ")
		if !indented && !strings.HasPrefix(text, "#") && strings.TrimSpace(text) != "" {
			parent, _, _ = strings.Cut(text, ":")
		}
		wanted := len(s.keys) == 1 && !indented || len(s.keys) == 2 && indented && parent == s.keys[0]
		if match := line.FindStringSubmatch(text); wanted && match != nil {
			lines[i] = fmt.Sprintf("%s %q%s%s", match[1], s.value, match[3], match[4])
			set++
		}
	}
	changed := []byte(strings.Join(lines, ""))
	if set != 1 {
		return nil, fmt.Errorf("%d lines set %s, want 1", set, strings.Join(s.keys, "."))
	}
	return changed, s.check(changed)
}

// check tells whether the file means what the changed line is to say.
func (s setting) check(content []byte) error {
	var file map[string]any
	if err := yaml.Unmarshal(content, &file); err != nil {
		return err
	}
	var got any = file
	for _, key := range s.keys {
		inner, _ := got.(map[string]any)
		got = inner[key]
	}
	if got != s.value {
		return fmt.Errorf("%s is %v after it was set to %q", strings.Join(s.keys, "."), got, s.value)
	}
	return nil
}
