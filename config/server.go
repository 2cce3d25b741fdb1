package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Server configures listening, TLS and self-protection.
type Server struct {
	// WebhookPort is the HTTPS port of the webhook. Default 9443.
	WebhookPort int `json:"webhookPort"`
	// CertDir holds tls.crt and tls.key; both are reloaded when they change.
	// Default /etc/gpu-binpacker/certs.
	CertDir string `json:"certDir"`
	// MinTLSVersion is "1.3" (default) or "1.2", for the webhook and the metrics.
	MinTLSVersion string `json:"minTLSVersion"`
	// ClientCAFile is a file of PEM certificates. With it, callers of the webhook
	// must present a certificate that one of them signed: the API server, once it
	// has been told to (docs/operating.md). It is read for each new connection.
	// Default "": everyone who reaches the port may ask.
	ClientCAFile string `json:"clientCAFile"`
	// ClientNames are the common names, DNS names and URIs of which a caller's
	// certificate must have one. Default none: any certificate of ClientCAFile.
	ClientNames []string `json:"clientNames"`
	// MetricsAddress serves /metrics over HTTPS with authentication; "0"
	// switches it off. Default ":8443".
	MetricsAddress string `json:"metricsAddress"`
	// MetricsInsecure serves /metrics over plain HTTP without authentication.
	// Default false.
	MetricsInsecure bool `json:"metricsInsecure"`
	// HealthAddress serves /healthz and /readyz. Default ":8081".
	HealthAddress string `json:"healthAddress"`
	// DecisionTimeout ends a decision that takes too long; the pod is then
	// admitted without a patch. Default 500ms, half of the webhook's timeout of
	// one second, so that our own answer is always the first to arrive.
	DecisionTimeout metav1.Duration `json:"decisionTimeout"`
	// MaxConcurrentRequests bounds the requests decided at once, those included whose
	// answer was sent when their time was over; a further one waits for a place up to
	// decisionTimeout, then gets status 503, which the API server ignores. Default
	// 64: a decision takes well under a millisecond. What requests may take of memory
	// is bounded apart.
	MaxConcurrentRequests int `json:"maxConcurrentRequests"`
}

func defaultServer() Server {
	return Server{
		WebhookPort:           9443,
		CertDir:               "/etc/gpu-binpacker/certs",
		MinTLSVersion:         "1.3",
		ClientNames:           []string{},
		MetricsAddress:        ":8443",
		HealthAddress:         ":8081",
		DecisionTimeout:       metav1.Duration{Duration: 500 * time.Millisecond},
		MaxConcurrentRequests: 64,
	}
}

// Log configures logging.
type Log struct {
	// Level is Info (default: starts, stops, changes of readiness) or Debug (one
	// line per decision as well, with the name of the pod).
	Level LogLevel `json:"level"`
	// Format is JSON (default) or Console.
	Format LogFormat `json:"format"`
}

// LogLevel is how much is logged.
type LogLevel string

// Values of LogLevel.
const (
	LogInfo  LogLevel = "Info"
	LogDebug LogLevel = "Debug"
)

// LogFormat is how log lines look.
type LogFormat string

// Values of LogFormat.
const (
	LogJSON    LogFormat = "JSON"
	LogConsole LogFormat = "Console"
)
