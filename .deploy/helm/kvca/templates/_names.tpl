{{- define "kvca.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* 50, so that there is room for -discovery and for the pods' numbers. */}}
{{- define "kvca.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "kvca.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "kvca.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "kvca.selector" -}}
app.kubernetes.io/name: {{ include "kvca.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kvca.labels" -}}
{{ include "kvca.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Where one service's engines are found: k8s://[NAMESPACE/]SERVICE[:PORT]. */}}
{{- define "kvca.discover" -}}
k8s://{{ with .namespace }}{{ . }}/{{ end }}{{ .service }}{{ with .port }}:{{ . }}{{ end }}
{{- end }}
