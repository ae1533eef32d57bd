{{- define "platform-apiserver.selectorLabels" -}}
app.kubernetes.io/name: platform-apiserver
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "platform-apiserver.labels" -}}
{{- include "platform-apiserver.labelsWith" (list . dict) }}
{{- end }}

{{- /* The labels of all objects, with further labels of one object: (list $ labels). */ -}}
{{- define "platform-apiserver.labelsWith" -}}
{{- $further := last . }}
{{- with first . -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "platform-apiserver.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: platform
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with merge (dict) ($further | default dict) .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "platform-apiserver.image" -}}
{{- .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "platform-apiserver.host" -}}
{{ .Values.service.name }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "platform-apiserver.configMapName" -}}
{{ .Values.existingConfigMap | default "platform-config" }}
{{- end }}

{{/* Name of the Secret with the serving certificate; empty if the server issues its own. */}}
{{- define "platform-apiserver.tlsSecretName" -}}
{{- if eq .Values.tls.mode "secret" }}{{ .Values.tls.secretName }}
{{- else if eq .Values.tls.mode "certManager" }}platform-apiserver-tls
{{- end }}
{{- end }}

{{/* Cluster configuration object. */}}
{{- define "platform-apiserver.configuration" -}}
{{- $config := deepCopy .Values.config }}
{{- $authentication := $config.authentication | default dict }}
{{- if not $authentication.issuer }}
{{- $_ := set $authentication "issuer" (printf "https://%s" (include "platform-apiserver.host" .)) }}
{{- end }}
{{- $_ := set $config "authentication" $authentication }}
apiVersion: config.platform.io/v1alpha1
kind: PlatformConfiguration
{{ omit $config "apiVersion" "kind" | toYaml }}
{{- end }}

{{/* Names of the Secrets that the value config references, as a YAML list. */}}
{{- define "platform-apiserver.secretRefs" -}}
{{- $names := list }}
{{- if not .Values.existingConfigMap }}
{{- with .Values.config.authentication }}
{{- range .users }}{{ with (.passwordRef).name }}{{ $names = append $names . }}{{ end }}{{ end }}
{{- range .clients }}{{ with (.secretRef).name }}{{ $names = append $names . }}{{ end }}{{ end }}
{{- end }}
{{- end }}
{{- toYaml $names }}
{{- end }}

{{- /* The host name of config.gateway.externalURL; empty if it is not set. */ -}}
{{- define "platform-apiserver.externalHost" -}}
{{- if not .Values.existingConfigMap }}
{{- with (.Values.config.gateway).externalURL }}{{ (urlParse .).hostname }}{{ end }}
{{- end }}
{{- end }}

{{- /* The end of the error for a missing host, which can also be in config.gateway.externalURL. */ -}}
{{- define "platform-apiserver.orExternalURL" -}}
{{- if .Values.existingConfigMap -}}
, because the chart does not read existingConfigMap
{{- else }} or config.gateway.externalURL
{{- end }}
{{- end }}

{{- /* The URL of the Ingress or HTTPRoute. */ -}}
{{- define "platform-apiserver.routedURL" -}}
{{- $url := "" }}
{{- if not .Values.existingConfigMap }}{{ $url = (.Values.config.gateway).externalURL }}{{ end }}
{{- $host := .Values.ingress.enabled | ternary .Values.ingress.host "" | default (first .Values.httpRoute.hostnames) }}
{{- $url | default (printf "https://%s" $host) }}
{{- end }}

{{- /* The port of the probes. */ -}}
{{- define "platform-apiserver.probePort" -}}
{{- if .Values.http.enabled -}}
port: http
{{- else -}}
port: https
scheme: HTTPS
{{- end }}
{{- end }}

{{- /* How Prometheus connects: over TLS, with the token of its own ServiceAccount. */ -}}
{{- define "platform-apiserver.scrape" -}}
scheme: https
path: /metrics
bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
tlsConfig:
  {{- if not (include "platform-apiserver.hasPublicCA" .) }}
  ca:
    configMap:
      name: platform-apiserver-ca
      key: ca.crt
  {{- end }}
  serverName: {{ .Values.service.name }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- /* Not empty if a public CA, which every client trusts, has signed the certificate of the server. */ -}}
{{- define "platform-apiserver.hasPublicCA" -}}
{{- if and (eq .Values.tls.mode "secret") (not .Values.tls.caBundle) }}true{{ end }}
{{- end }}
