// Package attack attacks the installed product on a real control plane, as a user
// who may only create and delete pods in one namespace, and as somebody in the pod
// network. Beside it the pods of another namespace, the victims', are created
// steadily. Each attack is a row of a table that must show that no victim was
// denied or delayed, that 99 % were steered, that memory stayed below the limit, and
// that everything is normal ten seconds later.
//
//	go test ./attack         # two attacks on a small cluster, a part of make test
//	go test ./attack -full   # all, on 5,000 nodes: make test-attack
//	go test ./attack -full -run 'TestAttack/(none|new_kinds)'
//
// The rows are printed and saved in bin/reports/attack.json.
//
// Files in reading order:
//
//   - attack_test.go: START HERE, the table of attacks
//   - row_test.go: one row, from the first victim to what it must show
//   - bars_test.go: what a row must show
//   - bed_test.go: what the rows share
//   - attacker_test.go: the user who attacks, and his barrage of pods
//   - pods_test.go: the attackers' pods
//   - connections_test.go: attacks on the ports
//   - recovery_test.go: what is normal
//   - counts_test.go, memory_test.go, probes_test.go, report_test.go: what is measured
//     and shown
package attack
