package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// checksumsFile is in the format of sha256sum.
const checksumsFile = "checksums.txt"

// writeChecksums writes the checksums of all files of a folder, sorted by name,
// to checksums.txt there and returns its path.
func writeChecksums(folder string) (string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", fmt.Errorf("writing checksums: %w", err)
	}
	var lines strings.Builder
	for _, entry := range entries {
		if entry.Name() == checksumsFile {
			continue
		}
		sum, err := checksum(filepath.Join(folder, entry.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, entry.Name())
	}
	if lines.Len() == 0 {
		return "", fmt.Errorf("writing checksums: no files in %s", folder)
	}
	file := filepath.Join(folder, checksumsFile)
	if err := os.WriteFile(file, []byte(lines.String()), 0o644); err != nil {
		return "", fmt.Errorf("writing checksums: %w", err)
	}
	return file, nil
}

func checksum(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("computing a checksum: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}
