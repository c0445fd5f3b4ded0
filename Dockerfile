# The dependencies that the program runs on, and nothing that is only needed to work on it.
FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:24-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json LICENSE ./
COPY dashboards/console dashboards/console
COPY feedback feedback
COPY probes probes
COPY sidecar sidecar
# Started once, so that what Node compiles is there for every start to come: see sidecar/evenkeel.
RUN echo 'http { server { listen 127.0.0.1:8080; } }' > /tmp/once.conf \
  && { sidecar/evenkeel -c /tmp/once.conf & sleep 5; kill -INT $!; wait $!; rm /tmp/once.*; test -d node_modules/.cache/evenkeel; }
# Mount the configuration here: evenkeel.conf or evenkeel.yaml.
WORKDIR /etc/evenkeel
RUN chown node:node /etc/evenkeel
USER node
EXPOSE 8080
ENTRYPOINT ["/app/sidecar/evenkeel"]
