// Command compare runs the Go benchmarks of an earlier commit and of the working
// tree in turns, in the same run, since a machine is not equally fast all the time.
// It writes bin/reports/bench-old.txt and bench-new.txt, and prints what benchstat
// makes of the two.
//
// The commit is checked out as a git worktree in a temporary folder, which is
// removed again, also after a failure or an interrupt. The working tree is compared
// as it is, with changes that are not committed. Each package with benchmarks is
// built into one test binary per tree. A package or benchmark that only one of the
// trees has is measured there; benchstat then shows one column for it.
//
// Files in reading order:
//
//   - main.go: START HERE, flags and the order of the steps
//   - base.go: which commit is compared with, and its checkout
//   - build.go: the packages with benchmarks, and their test binaries
//   - rounds.go: the benchmarks in turns
//   - command.go: running git, go and test binaries
package main
