// Package readme follows the README: it runs every command that the README
// shows, in its order, on a real control plane, as a reader with a cluster would.
// A command that cannot run there as it stands is in a table that says what is
// done instead, and why.
//
// Files in reading order:
//
//   - readme_test.go: START HERE, from the first command to the last
//   - steps_test.go: the table, and what must be true after a command
//   - outcome_test.go: the checks of the table, and how a cluster does its part
//   - reader_test.go: the reader's cluster, checkout and programs
//   - commands_test.go: which commands a document shows
package readme
