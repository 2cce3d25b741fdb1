// Package report holds the results of the packing benchmark: a file that grows
// with every run, a table and a picture.
//
// Files in reading order:
//
//   - result.go: START HERE, one result; its keys are a contract
//   - file.go: packing.json, merged and saved after every run
//   - groups.go: results side by side
//   - table.go: the table in the terminal
//   - picture.go, picture.html: packing.html
package report
