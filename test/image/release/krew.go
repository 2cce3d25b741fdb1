package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"text/template"
)

// writeKrewManifest fills in a template of krew-release-bot's form. The bot
// downloads each archive to compute its checksum; here they are in a folder.
func writeKrewManifest(source, version, archives, output string) error {
	text, err := os.ReadFile(source)
	if err != nil {
		return fmt.Errorf("reading the template: %w", err)
	}
	values := map[string]string{"TagName": version}
	functions := template.FuncMap{
		// The URL is a template of its own. The second line is indented for a
		// list of platforms that starts two spaces in, as the bot does it.
		"addURIAndSha": func(url, _ string) (string, error) {
			url, err := render(url, values, nil)
			if err != nil {
				return "", err
			}
			sum, err := checksum(filepath.Join(archives, path.Base(url)))
			return fmt.Sprintf("uri: %s\n    sha256: %s", url, sum), err
		},
	}
	manifest, err := render(string(text), values, functions)
	if err != nil {
		return fmt.Errorf("filling in %s: %w", source, err)
	}
	if err := os.WriteFile(output, []byte(manifest), 0o644); err != nil {
		return fmt.Errorf("writing the krew manifest: %w", err)
	}
	return nil
}

func render(text string, values map[string]string, functions template.FuncMap) (string, error) {
	parsed, err := template.New("").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, values)
	return out.String(), err
}
