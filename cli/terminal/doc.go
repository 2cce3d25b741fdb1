// Package terminal writes for people, on a terminal or into a file: text and tables
// within 80 columns, bold and dim where the screen takes it.
//
// Files in reading order:
//
//   - screen.go: START HERE, what the output can show
//   - table.go: columns as wide as they need to be
//   - text.go: lines, labels, numbers
package terminal
