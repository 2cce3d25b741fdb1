{{/* What selects the webhook's pods. Without the release's name: the names of all
objects are fixed, so that a cluster has one installation. */}}
{{- define "gpu-binpacker.selector" -}}
app.kubernetes.io/name: gpu-binpacker
app.kubernetes.io/component: webhook
{{- end }}

{{- define "gpu-binpacker.labels" -}}
app.kubernetes.io/name: gpu-binpacker
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "gpu-binpacker.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end -}}
{{- end }}

{{/* The configuration file. */}}
{{- define "gpu-binpacker.configuration" -}}
apiVersion: gpu-binpacker.io/v1alpha1
kind: Configuration
{{ toYaml .Values.configuration }}
{{- end }}

{{/* Numbers of ports that the configuration sets. The port of the metrics is empty
when they are off. */}}
{{- define "gpu-binpacker.metricsPort" -}}
{{- $address := dig "server" "metricsAddress" ":8443" .Values.configuration -}}
{{- if ne $address "0" }}{{ regexFind "[0-9]+$" $address }}{{ end -}}
{{- end }}

{{- define "gpu-binpacker.healthPort" -}}
{{- dig "server" "healthAddress" ":8081" .Values.configuration | regexFind "[0-9]+$" -}}
{{- end }}

{{/* 90 % of the limit of memory, so that the garbage collector works harder instead
of growing past it. Empty without a limit. */}}
{{- define "gpu-binpacker.memoryLimit" -}}
{{- $limit := dig "limits" "memory" "" .Values.resources -}}
{{- $mebibytes := trimSuffix "Mi" $limit | int -}}
{{- if hasSuffix "Gi" $limit -}}
{{- $mebibytes = trimSuffix "Gi" $limit | int | mul 1024 -}}
{{- end -}}
{{- if $limit }}{{ div (mul $mebibytes 90) 100 }}MiB{{ end -}}
{{- end }}

{{/* The CEL expression of `gpu-binpacker match-conditions`: the pod asks for one of
the configured resources. */}}
{{- define "gpu-binpacker.matchCondition" -}}
{{- $tests := list -}}
{{- with .Values.configuration.resources.names -}}
{{- $quoted := list -}}
{{- range . }}{{ $quoted = append $quoted (quote .) }}{{ end -}}
{{- $tests = append $tests (printf "r in [%s]" (join ", " $quoted)) -}}
{{- end -}}
{{- range .Values.configuration.resources.prefixes -}}
{{- $tests = append $tests (printf "r.startsWith(%s)" (quote .)) -}}
{{- end -}}
{{- $lists := list -}}
{{- range list "containers" "initContainers" -}}
{{- $lists = append $lists (printf "(has(object.spec.%s) && object.spec.%s.exists(c, has(c.resources) && has(c.resources.limits) && c.resources.limits.exists(r, %s)))" . . (join " || " $tests)) -}}
{{- end -}}
{{- join " || " $lists -}}
{{- end }}

{{/* What values.schema.json cannot say. */}}
{{- define "gpu-binpacker.validate" -}}
{{- $server := .Values.configuration.server | default dict -}}
{{- if hasKey $server "webhookPort" -}}
{{- fail "configuration.server.webhookPort: set webhook.port instead, which sets the container's port too" -}}
{{- end -}}
{{- if hasKey $server "clientCAFile" -}}
{{- fail "configuration.server.clientCAFile: set webhook.clientCAConfigMap instead, which mounts the file too" -}}
{{- end -}}
{{- range keys (include "gpu-binpacker.selector" . | fromYaml) -}}
{{- if hasKey ($.Values.podLabels | default dict) . -}}
{{- fail (printf "podLabels: %s selects the pods; leave it out" .) -}}
{{- end -}}
{{- end -}}
{{- if and (not .Values.certManager.issuerRef) (gt (trimSuffix "h" .Values.certManager.duration | int) 8760) -}}
{{- fail (printf "certManager.duration: %s is longer than 8760h: the certificate could outlive the CA that signed it; shorten it or set certManager.issuerRef" .Values.certManager.duration) -}}
{{- end -}}
{{- if ge (trimSuffix "h" .Values.certManager.renewBefore | int) (trimSuffix "h" .Values.certManager.duration | int) -}}
{{- fail (printf "certManager.renewBefore: %s must be shorter than certManager.duration, %s" .Values.certManager.renewBefore .Values.certManager.duration) -}}
{{- end -}}
{{- end }}
