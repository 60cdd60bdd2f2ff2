"""Kinds of secrets as developers meet them: templates in which the secret stands between « and ».

A slot is drawn at random: ``{a36}`` letters and digits, ``{b40}`` also ``+/``, ``{u16}`` upper case and digits,
``{l9}`` lower case, ``{q52}`` base32, ``{d10}`` digits, ``{h40}`` hexadecimal digits, ``{x20}`` letters, digits, ``-``
and ``_``, ``{c22}`` characters of password hashes, ``{uuid}``, ``{word}`` a short word, ``{pw}`` a password that a
person chose. Nothing here is a real secret.
"""

from collections.abc import Mapping, Sequence
from typing import Final

CLOUDS: Final[Mapping[str, Sequence[str]]] = {
    "aws access key": (
        "aws_access_key_id = «AKIA{u16}»",
        "the key «AKIA{u16}» was leaked",
        "using «ASIA{u16}» for now",
    ),
    "aws secret key": (
        "[default]\naws_secret_access_key = «{b40}»",
        "export AWS_SECRET_ACCESS_KEY=«{b40}»",
        '"SecretAccessKey": "«{b40}»",',
    ),
    "aws session token": ("AWS_SESSION_TOKEN=«IQoJb3JpZ2luX2Vj{b300}»", '"SessionToken": "«FwoGZXIvYXdz{b200}==»"'),
    "gcp service account": (
        '{"type": "service_account", "project_id": "tides", "private_key_id": "«{h40}»", "private_key": '
        '"-----BEGIN PRIVATE KEY-----\\nMIIE«{b60}»\\n«{b64}»\\n«{b64}»\\n-----END PRIVATE KEY-----\\n"}',
    ),
    "google api key": ("https://maps.example.com/js?key=«AIza{x35}»&v=3", "GEMINI_API_KEY=«AIza{x35}»"),
    "google oauth": ("client_secret: «GOCSPX-{x28}»", "access token «ya29.a0Af{x120}»", "refresh «1//0{x60}»"),
    "azure client secret": ("AZURE_CLIENT_SECRET=«{a3}8Q~{x34}»", "the app's secret is «{a3}8Q~{x34}»"),
    "azure storage": (
        "DefaultEndpointsProtocol=https;AccountName=tides;AccountKey=«{b86}==»;EndpointSuffix=core.windows.net",
        "AZURE_STORAGE_KEY=«{b86}==»",
    ),
    "azure sas": ("https://tides.blob.core.windows.net/a/b.csv?sv=2024-11-04&sp=r&sig=«{a40}%3D»",),
    "azure service bus": ("Endpoint=sb://tides.example.net/;SharedAccessKeyName=Root;SharedAccessKey=«{b43}=»",),
    "azure devops": ("AZURE_DEVOPS_EXT_PAT=«{q52}»", "git clone https://user:«{q52}»@dev.azure.com/org/p/_git/r"),
    "digitalocean": ("DIGITALOCEAN_TOKEN=«dop_v1_{h64}»", "doctl auth init -t «dop_v1_{h64}»", "«doo_v1_{h64}»"),
    "cloudflare": (
        "CLOUDFLARE_API_TOKEN=«{x40}»",
        "curl -H 'X-Auth-Key: «{h37}»' https://api.cloudflare.com",
        "cloudflared tunnel run --token «eyJhIjoi{a120}»",
    ),
    "heroku": ("HEROKU_API_KEY=«{uuid}»", "heroku: «HRKU-{x60}»"),
    "alibaba": ("access_key_id: «LTAI{a20}»\naccess_key_secret: «{a30}»",),
    "linode": ("LINODE_TOKEN=«{h64}»",),
    "fly": ("FLY_API_TOKEN=«FlyV1 fm2_{b120}»", "fly auth: «fo1_{x43}»"),
    "vercel": ("VERCEL_TOKEN=«{a24}»", "vercel deploy --token «{a24}»", "vercel deploy --token=«{a24}»"),
    "netlify": ("netlify deploy --auth «nfp_{a36}»",),
    "supabase": ("SUPABASE_ACCESS_TOKEN=«sbp_{h40}»", "secret «sb_secret_{x31}»"),
    "planetscale": ("pscale: «pscale_tkn_{x43}»", "password «pscale_pw_{x43}»"),
}

VENDORS: Final[Mapping[str, Sequence[str]]] = {
    "github classic": ("«ghp_{a36}»", "gh auth login --with-token <<< «ghp_{a36}»", "remote uses «gho_{a36}» now"),
    "github fine-grained": ("«github_pat_{a22}_{a59}»", "token: «github_pat_{a22}_{a59}»"),
    "github app": ("«ghs_{a36}»", "refresh with «ghr_{a76}»", "user to server: «ghu_{a36}»"),
    "gitlab": (
        "«glpat-{x20}»",
        "PRIVATE-TOKEN: «glpat-{x20}»",
        "deploy «gldt-{x20}», runner «glrt-{x20}»",
        "«glpat-{x27}.01.{a9}»",
    ),
    "bitbucket": ("«ATBB{a32}»", "app password «ATCTT3xFfGN0{x160}»"),
    "atlassian": ("JIRA_API_TOKEN=«ATATT3xFfGF0{x170}»",),
    "slack": ("«xoxb-{d12}-{d12}-{a24}»", "SLACK_TOKEN=«xoxp-{d12}-{d12}-{d12}-{h32}»", "«xapp-1-A{u10}-{d13}-{h64}»"),
    "slack webhook": ("https://hooks.slack.com/services/T{u8}/B{u10}/«{a24}»",),
    "discord webhook": ("https://discord.com/api/webhooks/{d18}/«{x68}»",),
    "teams webhook": ("https://org.webhook.office.com/webhookb2/{uuid}@{uuid}/IncomingWebhook/«{h32}»/{uuid}",),
    "stripe": ("«sk_live_{a99}»", "STRIPE_KEY=«rk_live_{a24}»", "«sk_test_{a24}»", "endpoint secret «whsec_{a32}»"),
    "twilio": ("Twilio(«SK{h32}»)", "TWILIO_AUTH_TOKEN=«{h32}»", "auth_token: «{h32}»"),
    "sendgrid": ("«SG.{x22}.{x43}»",),
    "mailgun": ("curl --user 'api:«key-{h32}»' https://api.mailgun.net/v3", "«{h32}-{h8}-{h8}» is the MAILGUN key"),
    "mailchimp": ("«{h32}-us14»",),
    "postmark": ("X-Postmark-Server-Token: «{uuid}»",),
    "npm": ("//registry.npmjs.org/:_authToken=«npm_{a36}»", "NPM_TOKEN «npm_{a36}»", "_auth=«{b40}=»"),
    "pypi": ("«pypi-AgEIcHlwaS5vcmc{x150}»", "twine upload -u __token__ -p «pypi-AgEIcHlwaS5vcmc{x150}» dist/*"),
    "rubygems": ("«rubygems_{h48}»",),
    "crates": ("cargo login «cio{a32}»", '[registry]\ntoken = "«cio{a32}»"'),
    "docker hub": ("docker login -u ada -p «dckr_pat_{x27}»", '{"auths": {"index.docker.io": {"auth": "«{b44}»"}}}'),
    "hugging face": ("«hf_{a34}»", "HF_TOKEN=«hf_{a34}»"),
    "openai": ("«sk-proj-{x74}T3BlbkFJ{x74}»", "OPENAI_API_KEY=«sk-{a20}T3BlbkFJ{a20}»", "«sk-svcacct-{x60}»"),
    "anthropic": ("«sk-ant-api03-{x93}AA»", "ANTHROPIC_API_KEY=«sk-ant-oat01-{x80}»"),
    "openrouter": ("«sk-or-v1-{h64}»",),
    "groq and xai": ("«gsk_{a52}»", "«xai-{a80}»", "«pplx-{a48}»", "replicate: «r8_{a37}»"),
    "databricks": ("«dapi{h32}»", "databricks: «dapi{h32}-2»"),
    "vault": (
        "VAULT_TOKEN=«hvs.{x90}»",
        "Unseal Key 1: «{b43}=»",
        "vault login «s.{a24}»",
        "Initial Root Token: «hvs.{x24}»",
    ),
    "terraform": ('token = "«{a14}.atlasv1.{x67}»"',),
    "telegram": ("bot «{d10}:AA{x33}»", "https://api.telegram.org/bot«{d10}:AA{x33}»/getMe"),
    "discord bot": ("client.login('«M{a25}.{a6}.{x38}»')", "DISCORD_TOKEN=«M{a25}.G{a5}.{x38}»"),
    "shopify": ("«shpat_{h32}»", "«shpss_{h32}»"),
    "square": ("«EAAA{x60}»", "«sq0csp-{x43}»"),
    "new relic": ("«NRAK-{u27}»", "license_key: «{h36}NRAL»"),
    "datadog": ("DD_API_KEY=«{h32}»", "DD-APPLICATION-KEY: «{h40}»", "dd_app_key: «{h40}»"),
    "sentry": ("https://«{h32}»@o{d6}.ingest.sentry.io/{d7}", "«sntrys_{b120}»", "«sntryu_{h64}»"),
    "grafana": ("«glsa_{a32}_{h8}»", "«glc_{b120}»"),
    "linear and notion": ("«lin_api_{a40}»", "«ntn_{a46}»", "NOTION=«secret_{a43}»"),
    "figma": ("«figd_{x40}»",),
    "airtable": ("«pat{a14}.{h64}»",),
    "dropbox": ("«sl.{x135}»",),
    "pulumi": ("«pul-{h40}»",),
    "postman": ("«PMAK-{h24}-{h34}»",),
    "algolia": ("ALGOLIA_ADMIN_KEY=«{h32}»", "X-Algolia-API-Key: «{h32}»"),
    "firebase": ("«AAAA{a7}:APA91b{x134}»",),
    "contentful": ("«CFPAT-{x43}»",),
    "doppler": ("«dp.pt.{a43}»",),
    "age key": ("«AGE-SECRET-KEY-1{u58}»",),
    "sonar": ("sonar.login=«squ_{h40}»", "SONAR_TOKEN=«sqp_{h40}»"),
    "tailscale": ("tailscale up --authkey «tskey-auth-{a12}CNTRL-{a32}»",),
}
