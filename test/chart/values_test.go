package chart

import (
	"strings"
	"testing"
)

// Wrong values are refused before anything is installed, with their path and what is
// wrong.
func TestWrongValuesAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		values values
		want   []string
	}{
		"unknown value":            {set("replicaCount", 3), []string{"replicaCount"}},
		"unknown nested value":     {set("image.name", "x"), []string{"/image", "name"}},
		"failurePolicy":            {set("webhook.failurePolicy", "Fail"), []string{"/webhook", "failurePolicy"}},
		"replicas as text":         {set("replicas", "2"), []string{"/replicas", "got string, want integer"}},
		"no replicas":              {set("replicas", 0), []string{"/replicas", "1"}},
		"pull policy":              {set("image.pullPolicy", "Sometimes"), []string{"/image/pullPolicy", "IfNotPresent"}},
		"digest":                   {set("image.digest", "abc"), []string{"/image/digest", "sha256"}},
		"tag with repository":      {set("image.tag", "a/b"), []string{"/image/tag"}},
		"port":                     {set("webhook.port", 70000), []string{"/webhook/port", "65,535"}},
		"hostNetwork as text":      {set("hostNetwork", "yes"), []string{"/hostNetwork", "boolean"}},
		"kind of issuer":           {set("certManager.issuerRef", values{"name": "ca", "kind": "Isuer"}), []string{"/certManager/issuerRef/kind", "ClusterIssuer"}},
		"issuer without name":      {set("certManager.issuerRef", values{"kind": "Issuer"}), []string{"/certManager/issuerRef", "name"}},
		"duration without unit":    {set("certManager.duration", "90"), []string{"/certManager/duration"}},
		"outlives the CA":          {set("certManager.duration", "10000h"), []string{"certManager.duration", "8760h", "certManager.issuerRef"}},
		"renewed too early":        {set("certManager.renewBefore", "2160h"), []string{"certManager.renewBefore", "certManager.duration"}},
		"memory in bytes":          {set("resources.limits.memory", "500000000"), []string{"/resources/limits/memory", "Mi"}},
		"selecting label":          {set("podLabels", values{"app.kubernetes.io/name": "x"}), []string{"podLabels", "app.kubernetes.io/name", "leave it out"}},
		"peer":                     {set("networkPolicy.webhookFrom", []any{values{"cidr": "10.0.0.0/8"}}), []string{"/networkPolicy/webhookFrom/0", "cidr"}},
		"mode":                     {set("configuration.mode", "Dry"), []string{"/configuration/mode", "DryRun"}},
		"unknown setting":          {set("configuration.strategy", "BestFit"), []string{"/configuration", "strategy"}},
		"unknown nested setting":   {set("configuration.ranking.emptyNode", "x"), []string{"/configuration/ranking", "emptyNode"}},
		"setting out of range":     {set("configuration.weights.maxTerms", 0), []string{"/configuration/weights/maxTerms", "1"}},
		"version as number":        {set("configuration.scheduler.kubernetesVersion", 1.37), []string{"/configuration/scheduler/kubernetesVersion", "want string"}},
		"no GPU resources":         {set("configuration.resources", values{"names": []any{}, "prefixes": []any{}}), []string{"/configuration/resources"}},
		"resources taken out":      {set("configuration.resources", nil), []string{"/configuration", "resources"}},
		"prefixes taken out":       {set("configuration.resources.prefixes", nil), []string{"/configuration/resources", "prefixes"}},
		"native resource":          {set("configuration.resources.names", []any{"kubernetes.io/batch-cpu"}), []string{"/configuration/resources/names/0"}},
		"resource without domain":  {set("configuration.resources.names", []any{"gpu"}), []string{"/configuration/resources/names/0"}},
		"CEL in a name":            {set("configuration.resources.names", []any{`a.com/b"]||true||r in ["`}), []string{"/configuration/resources/names/0"}},
		"open prefix":              {set("configuration.resources.prefixes", []any{"nvidia.com/mig"}), []string{"/configuration/resources/prefixes/0"}},
		"health address off":       {set("configuration.server.healthAddress", "0"), []string{"/configuration/server/healthAddress"}},
		"port in two places":       {set("configuration.server.webhookPort", 10250), []string{"configuration.server.webhookPort", "webhook.port"}},
		"client CA in two places":  {set("configuration.server.clientCAFile", "/ca.crt"), []string{"configuration.server.clientCAFile", "webhook.clientCAConfigMap"}},
		"duration of a setting":    {set("configuration.inFlight.targetMaxAge", 60), []string{"/configuration/inFlight/targetMaxAge", "string"}},
		"monitor without metrics":  {values{"configuration": set("server.metricsAddress", "0"), "metrics": set("serviceMonitor.enabled", true)}, []string{"metrics.serviceMonitor.enabled", "metricsAddress"}},
		"reader without namespace": {set("metrics.readers", []any{values{"name": "prometheus"}}), []string{"/metrics/readers/0", "namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(t.Context(), Namespace, tc.values)
			if err == nil {
				t.Fatalf("%v is accepted", tc.values)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not contain %q:\n%v", want, err)
				}
			}
		})
	}
}

// What the table above makes wrong is right in another form.
func TestRightValuesAreAccepted(t *testing.T) {
	for name, given := range map[string]values{
		"digest":          set("image.digest", "sha256:"+strings.Repeat("0", 64)),
		"cluster issuer":  set("certManager.issuerRef", values{"name": "ca", "kind": "ClusterIssuer"}),
		"external issuer": set("certManager.issuerRef", values{"name": "ca", "kind": "AWSPCAIssuer", "group": "awspca.cert-manager.io"}),
		"long lived":      {"certManager": values{"issuerRef": values{"name": "ca"}, "duration": "10000h"}},
		"memory":          set("resources.limits.memory", "2Gi"),
		"selector":        set("configuration.nodes.excludeSelector", values{"matchLabels": values{"a": "b"}}),
		"no metrics":      set("configuration.server.metricsAddress", "0"),
		"global":          set("global", values{"of": "a parent chart"}),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Render(t.Context(), Namespace, given); err != nil {
				t.Error(err)
			}
		})
	}
}
