package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// matchConditionsPatch is the part of a MutatingWebhookConfiguration that
// depends on the configured resource names. It has no more fields than a
// strategic merge patch needs.
type matchConditionsPatch struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Webhooks []webhookPatch `json:"webhooks"`
}

type webhookPatch struct {
	Name            string                                   `json:"name"`
	MatchConditions []admissionregistrationv1.MatchCondition `json:"matchConditions"`
}

func newMatchConditions() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "match-conditions",
		Short: "Print the webhook's matchConditions for a configuration",
		Long: `Print, as a patch for the MutatingWebhookConfiguration, the matchConditions that
let exactly the pods through that ask for a configured GPU resource name. Apply
it whenever resources.names or resources.prefixes change:

  gpu-binpacker match-conditions --config configuration.yaml > patch.yaml
  kubectl patch mutatingwebhookconfiguration ` + config.WebhookConfigurationName + ` --patch-file patch.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(path, nil)
			if err != nil {
				return err
			}
			patch := matchConditionsPatch{
				TypeMeta: metav1.TypeMeta{
					APIVersion: admissionregistrationv1.SchemeGroupVersion.String(),
					Kind:       "MutatingWebhookConfiguration",
				},
				Webhooks: []webhookPatch{{
					Name:            config.WebhookName,
					MatchConditions: config.MatchConditions(cfg.Resources),
				}},
			}
			patch.Metadata.Name = config.WebhookConfigurationName
			out, err := yaml.Marshal(patch)
			if err != nil {
				return fmt.Errorf("encoding matchConditions: %w", err)
			}
			_, err = cmd.OutOrStdout().Write(out)
			return err
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "configuration file; the defaults when not given")
	return cmd
}
