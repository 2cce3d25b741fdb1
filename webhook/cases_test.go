package webhook

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// casesShownBy lists, for each situation of the public record of what went wrong
// with webhooks like this one, the tests that show what happens here. Golden files
// state their case themselves and come on top, so a new one needs no line here;
// nil says that they are all there is.
var casesShownBy = map[string][]string{
	// Pod specs.
	"C01": {"webhook.TestLogNamesGeneratedPods"},
	"C02": {"validation.TestGoldenPods"},
	"C03": {"e2e.TestUserAffinitySurvives"},
	"C04": {"scoring.TestDecideUserPreferences", "e2e.TestUserPreferenceIsNeverReversed"},
	"C05": {"nodes.TestFeasibilityRequiredTerms"},
	"C06": {"index.TestIndexCountsLikeTheScheduler"},
	"C08": nil,
	"C09": {"steering.TestServedScheduler"},
	"C10": {"demand.TestNewDemand", "config.TestMatchConditionsPods"},
	"C11": {"demand.TestAmountOf", "demand.TestAmountsPlus"},
	"C12": {"scoring.TestDecideHeterogeneous", "e2e.TestHeterogeneousNames"},
	"C14": {"config.TestIsGPU"},
	"C15": nil,
	"C16": nil,
	"C17": nil,
	"C18": {"scheduler.TestChain", "agreement.TestChainHolds", "index.TestLandings", "e2e.TestReplicasStayTogether"},
	"C20": {"config.TestMatchConditionsPods"},

	// Node states.
	"C21": {"nodes.TestFeasibility"},
	"C22": {"nodes.TestFeasibility"},
	"C24": {"webhook.TestNodeGone", "watch.TestFeedsReplace", "webhook.TestHandleBeforeSync"},
	"C25": {"index.TestIndexIgnoresHeartbeats"},
	"C26": {"index.TestBlackHoleBackoff"},
	"C27": nil,
	"C30": {"scoring.TestEveryWindowHoldsAListedNode", "scheduler.TestUnlistedMayWin", "agreement.TestWindowsOfLargeClusters", "agreement.TestTargetNotExamined"},

	// Accounting.
	"C31": {"index.TestIndexCountsLikeTheScheduler"},
	"C32": {"index.TestIndexCountsLikeTheScheduler"},
	"C33": {"index.TestIndexCountsLikeTheScheduler", "scoring.TestRanking"},
	"C36": {"index.TestReserveInParallel", "index.TestReservationLifeCycle", "index.TestReservationEnds", "index.TestTwoReplicasBurst", "e2e.TestPacking"},

	// The admission protocol.
	"C38": {"webhook.TestHandleNeverDenies", "webhook.TestHandleTimeout", "webhook.TestHandleBeforeSync", "server.TestServeHTTPPanic", "faults.TestFaults"},
	"C39": {"webhook.TestHandleNeverDenies", "webhook.TestSplicedPods", "webhook.FuzzReview", "validation.TestRandomPods", "validation.FuzzPods"},
	"C40": {"scoring.TestDecideDryRun", "packaging.TestWebhook"},
	"C41": {"index.TestReinvocationAndCopies"},
	"C42": {"packaging.TestWebhook"},
	"C44": {
		"server.TestServeHTTP", "server.TestEndlessBodyIsBounded", "server.TestMemoryBudget", "server.TestMemoryBeforeBody",
		"server.TestSmallRequestsPassLargeOnes", "server.TestWorkOutlivesItsAnswer", "server.TestHealthServerUnderAttack",
		"nodes.TestConstraintsTooLarge", "index.TestMemoryOfAnnotations", "index.TestMemoryOfResources", "index.TestMemoryOfForgedLists",
		"webhook.FuzzHTTPBody", "faults.TestFaults", "attack.TestAttack",
	},
	"C45": {"packaging.TestWebhook", "packaging.TestNetworkPolicyLetsInWhatIsNeeded", "packaging.TestAvailability", "faults.TestFaults"},
	"C46": {"server.TestListenerReloadsCertificate", "packaging.TestCertificates", "faults.TestFaults"},
	"C47": {"packaging.TestWebhook", "installation.TestInstall"},
	"C48": {"packaging.TestWebhook", "faults.TestFaults"},
	"C49": {"packaging.TestPrivateGKEOverlay", "packaging.TestHostNetworkOverlay", "index.TestUnsteered", "faults.TestFaults"},

	// Interplay.
	"C50": {"scheduler.TestEqualWeighting", "agreement.TestEqualWeights"},
	"C51": {"e2e.TestNothingFits"},
	"C53": nil,
	"C54": nil,
	"C55": {"packaging.TestWebhook"},
	"C56": {"webhook.TestPodsOfOneOwnerStayAlike"},
	"C58": {"webhook.TestPodsOfOneOwnerStayAlike", "scoring.TestDecideStableWhileANodeFills"},

	// Nodes that lie.
	"C64": {"index.TestStartErrors", "index.TestBackoffForWhom"},
	"C65": {"index.TestSlowBlackHole"},
	"C72": {"index.TestKubeletRestart"},
	"C67": {"e2e.TestForbiddingPolicies"},
}

// knownCases are all of the record; the numbers between them were dropped there.
var knownCases = strings.Fields("C01 C02 C03 C04 C05 C06 C08 C09 C10 C11 C12 C14 C15 C16 C17 C18 C20 " +
	"C21 C22 C24 C25 C26 C27 C30 C31 C32 C33 C36 C38 C39 C40 C41 C42 C44 C45 C46 C47 C48 C49 C50 C51 C53 C54 C55 C56 C58 C64 C65 C67 C72")

func TestEveryCaseIsShown(t *testing.T) {
	if got := slices.Sorted(maps.Keys(casesShownBy)); !slices.Equal(got, knownCases) {
		t.Errorf("the table has cases %v, want %v", got, knownCases)
	}
	shown := map[string]int{}
	for name, golden := range goldenCases(t) {
		if _, known := casesShownBy[golden.Case]; !known && golden.Case != "" {
			t.Errorf("golden file %s is of case %q, which is not in the table", name, golden.Case)
		}
		shown[golden.Case]++
	}
	tests := map[string][]string{}
	for id, names := range casesShownBy {
		for _, name := range names {
			pkg, function, _ := strings.Cut(name, ".")
			if tests[pkg] == nil {
				tests[pkg] = testsOf(t, pkg)
			}
			if !slices.Contains(tests[pkg], function) {
				t.Errorf("%s names %s, which does not exist", id, name)
			}
		}
		if shown[id]+len(names) == 0 {
			t.Errorf("nothing shows %s", id)
		}
	}
}

// testsOf returns the names of the tests and fuzz targets of a package, which is at
// the top of the repository, under scoring, under webhook or under test.
func testsOf(t *testing.T, pkg string) []string {
	t.Helper()
	var names []string
	for _, folder := range []string{filepath.Join("..", pkg), filepath.Join("..", "scoring", pkg), filepath.Join("..", "webhook", pkg), filepath.Join("..", "test", pkg)} {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, declaration := range parsed.Decls {
				if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
					names = append(names, f.Name.Name)
				}
			}
		}
	}
	return names
}
